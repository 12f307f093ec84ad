package leaks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

func TestMain(m *testing.M) { mountns.Main(m) }

// TestEachKind leaves one thing of each kind behind.
func TestEachKind(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		kind  string
		scope Scope
		leave func(t *testing.T) (what string)
	}{
		{"file", Scope{Directories: []string{dir, filepath.Join(dir, "missing")}}, func(t *testing.T) string {
			path := filepath.Join(dir, "sub", "f")
			if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}},
		{"mount", Scope{Namespace: os.Getpid(), Below: dir}, func(t *testing.T) string {
			mountns.Require(t)
			if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
			return dir + " of /"
		}},
		{"descriptor", Scope{Process: os.Getpid()}, func(t *testing.T) string {
			file, err := os.OpenFile(filepath.Join(t.TempDir(), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = file.Close() })
			if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			return file.Name() + " (locked)"
		}},
		{"descriptor", Scope{Process: os.Getpid()}, func(t *testing.T) string {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = read.Close(); _ = write.Close() })
			return "pipe, "
		}},
	} {
		t.Run(row.kind, func(t *testing.T) {
			before := Look(t, row.scope)
			what := row.leave(t)
			more := Look(t, row.scope).Since(before)
			if !strings.Contains(strings.Join(more, "\n"), row.kind+": "+what) {
				t.Errorf("found %q, want a %s %q", more, row.kind, what)
			}
			if less := before.Since(Look(t, row.scope)); len(less) > 0 {
				t.Errorf("what is gone is called left behind: %q", less)
			}
		})
	}
}

// TestOrphan: what a killed program had started is found, until it ends.
func TestOrphan(t *testing.T) {
	if err := Adopt(); err != nil {
		t.Fatal(err)
	}
	scope := Scope{Family: os.Getpid()}
	before := Look(t, scope)
	parent := process.Start(t, exec.Command("sh", "-c", "sleep 1234 >/dev/null 2>&1 & echo $!; wait"))
	process.Await(t, "the child's number", func() bool { return strings.HasSuffix(parent.Log.String(), "\n") })
	child, err := strconv.Atoi(strings.TrimSpace(parent.Log.String()))
	if err != nil {
		t.Fatal(err)
	}
	parent.Kill()
	process.Await(t, "the orphan alone to be found", func() bool {
		more := Look(t, scope).Since(before)
		return len(more) == 1 && strings.Contains(more[0], "process: sleep 1234, 1 instead of 0")
	})
	if err := unix.Kill(child, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	Await(t, before, scope)
}

func TestMemory(t *testing.T) {
	if now := Look(t, Scope{Process: os.Getpid()}); now.Anonymous < 1<<20 || now.Threads < 1 {
		t.Errorf("a Go program has %d bytes in %d threads", now.Anonymous, now.Threads)
	}
}
