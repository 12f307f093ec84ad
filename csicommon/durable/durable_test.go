package durable_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
)

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	for _, content := range []string{"one", "two, and longer", ""} {
		if err := durable.Replace(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		expect(t, path, content)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("mode %v, error %v, want 0640", info.Mode(), err)
	}
}

func TestReplaceKeepsItsModeUnderAnyUmask(t *testing.T) {
	defer unix.Umask(unix.Umask(0o777))
	path := filepath.Join(t.TempDir(), "record")
	if err := durable.Replace(path, []byte("x"), 0o604); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o604 {
		t.Errorf("mode %v, error %v, want 0604", info.Mode(), err)
	}
}

// A crash left the file that was to replace the other, longer than what comes now.
func TestReplaceAfterACrash(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	if err := os.WriteFile(path+durable.Suffix, []byte(strings.Repeat("left", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.Replace(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "new")
}

// What is in the place of that file is somebody's mistake, or trap: it leads nowhere, and
// holds up nothing.
func TestReplaceWritesToNothingThatIsThere(t *testing.T) {
	for name, leave := range map[string]func(next, other string) error{
		"a link":      func(next, other string) error { return os.Symlink(other, next) },
		"a hard link": func(next, other string) error { return os.Link(other, next) },
		"a FIFO":      func(next, _ string) error { return unix.Mkfifo(next, 0o600) },
		"a directory": func(next, _ string) error { return os.Mkdir(next, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, other := filepath.Join(dir, "record"), filepath.Join(dir, "other")
			if err := os.WriteFile(other, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := leave(path+durable.Suffix, other); err != nil {
				t.Fatal(err)
			}
			if err := durable.Replace(path, []byte("new"), 0o600); err != nil {
				t.Fatal(err)
			}
			expect(t, path, "new")
			expect(t, other, "kept")
		})
	}
}

// Nothing is in the way of the old file when the new one cannot be had, and the error
// does not repeat a path.
func TestReplaceThatFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "record")
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	err := durable.Replace(path, []byte("new"), 0o600)
	if err == nil || strings.Contains(err.Error(), dir) {
		t.Fatalf("error %v, want one without the path", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v are there, want the old one alone", left, err)
	}
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	for range 2 { // The second finds nothing.
		if err := durable.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := durable.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func expect(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
