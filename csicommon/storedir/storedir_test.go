package storedir

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func layout(dir string) Layout {
	return Layout{Dir: dir, Format: 2, Parts: []string{"things", "trash"}, Foreign: []string{"scratch"},
		Unfinished: func(name string) bool { return strings.HasPrefix(name, ".new-") }}
}

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(layout(dir))
	check(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, text string, names ...string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(names...), []byte(text), 0o600))
}

func TestOpenMakesAndFindsAStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	s := open(t, dir)
	if uid, err := s.Cluster(); err != nil || uid != "" {
		t.Errorf("cluster %q, %v", uid, err)
	}
	check(t, s.SetCluster("uid"))
	if s.Path() != dir || s.Dir().Name() != dir || s.Part("things").Name() != filepath.Join(dir, "things") {
		t.Errorf("%q, %q", s.Path(), s.Part("things").Name())
	}
	if _, err := Open(layout(dir)); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second Open: %v", err)
	}
	check(t, s.Close())
	link := filepath.Join(t.TempDir(), "link")
	check(t, os.Symlink(dir, link))
	s = open(t, link)
	if uid, err := s.Cluster(); err != nil || uid != "uid" || s.Path() != dir {
		t.Errorf("cluster %q, %v of %q", uid, err, s.Path())
	}
}

func TestOpenTakesWhatAKilledProcessLeft(t *testing.T) {
	for _, name := range []string{"lock", "cluster", "format.next", "cluster.next", ".new-x", "lost+found/", "things/", "scratch/"} {
		dir := t.TempDir()
		if path, isDir := strings.CutSuffix(name, "/"); isDir {
			check(t, os.Mkdir(filepath.Join(dir, path), 0o755))
		} else {
			write(t, "", dir, name)
		}
		open(t, dir)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(dir string) error
		words string
	}{
		{"something else", func(dir string) error { return os.Mkdir(filepath.Join(dir, "home"), 0o755) }, `"home"`},
		{"a part that is full", func(dir string) error { return os.MkdirAll(filepath.Join(dir, "scratch", "x"), 0o755) }, `"x"`},
		{"a link called as what is left", func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "cluster.next")) }, `"cluster.next"`},
		{"a part that is a link", func(dir string) error { return os.Symlink("/etc", filepath.Join(dir, "things")) }, "a link or a file"},
		{"a later format", func(dir string) error { return os.WriteFile(filepath.Join(dir, "format"), []byte("3\n"), 0o600) }, "format 3"},
		{"a format of none", func(dir string) error { return os.WriteFile(filepath.Join(dir, "format"), []byte("0\n"), 0o600) }, "damaged"},
		{"a format without end", func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "format"), nil, 0o600), os.Truncate(filepath.Join(dir, "format"), 1<<40))
		}, "more than"},
		{"a FIFO as lock", func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "lock"), 0o600) }, "not a regular file"},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			check(t, row.spoil(dir))
			if s, err := Open(layout(dir)); err == nil || !strings.Contains(err.Error(), row.words) {
				t.Errorf("%v, %v, want an error with %s", s, err, row.words)
			}
		})
	}
	if _, err := Open(layout("relative")); err == nil {
		t.Error("a relative path is taken")
	}
}

func TestOpenAsksBeforeItChangesAnything(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Chmod(dir, 0o755))
	l, refusal := layout(dir), errors.New("refused")
	l.Check = func(asked string) error {
		if asked != dir {
			t.Errorf("asked about %q", asked)
		}
		return refusal
	}
	if _, err := Open(l); !errors.Is(err, refusal) {
		t.Errorf("error %v", err)
	}
	entries, err := os.ReadDir(dir)
	info, statErr := os.Stat(dir)
	check(t, errors.Join(err, statErr))
	if len(entries) != 0 || info.Mode().Perm() != 0o755 {
		t.Errorf("%v are there, mode %v", entries, info.Mode())
	}
}

func TestALostClusterIsNotANewStore(t *testing.T) {
	s := open(t, t.TempDir())
	for _, lose := range []func(string) error{func(path string) error { return os.Truncate(path, 0) }, os.Remove} {
		check(t, lose(filepath.Join(s.Path(), "cluster")))
		if uid, err := s.Cluster(); !errors.Is(err, ErrClusterLost) {
			t.Errorf("cluster %q, %v", uid, err)
		}
	}
}

func TestUsable(t *testing.T) {
	s := open(t, t.TempDir())
	check(t, errors.Join(s.Usable(t.Context(), "things"), s.Writable(t.Context())))
	check(t, os.Rename(s.Part("trash").Name(), s.Path()+"/other"))
	check(t, s.Usable(t.Context(), "things"))
	if err := s.Usable(t.Context(), "trash"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a part: %v", err)
	}
	check(t, os.Mkdir(s.Path()+"/trash", 0o700))
	if err := s.Usable(t.Context(), "trash"); err == nil || !strings.Contains(err.Error(), "no longer") {
		t.Errorf("with another part: %v", err)
	}
}

// A disk that hangs costs one thread, however many ask.
func TestAHungDiskIsAskedOnce(t *testing.T) {
	s := open(t, t.TempDir())
	hang, asked := make(chan struct{}), 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 10 {
		err := s.ask(ctx, "x", func() error { asked++; <-hang; return nil })
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("error %v", err)
		}
	}
	close(hang)
	check(t, s.ask(t.Context(), "x", func() error { return nil }))
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestSweepRemovesWhatIsUnfinishedAlone(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "a.next", "b.next.x"} {
		write(t, "", dir, name)
	}
	check(t, os.Mkdir(filepath.Join(dir, "d.next"), 0o700))
	check(t, os.MkdirAll(filepath.Join(dir, "full.next", "x"), 0o700))
	opened, err := os.Open(dir)
	check(t, err)
	defer opened.Close()
	if err := Sweep(opened, IsNext); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("error %v, want that of the directory that is not empty", err)
	}
	names, err := Names(opened)
	check(t, err)
	slices.Sort(names)
	if want := []string{"a", "b.next.x", "full.next"}; !slices.Equal(names, want) {
		t.Errorf("%q are left, want %q", names, want)
	}
}
