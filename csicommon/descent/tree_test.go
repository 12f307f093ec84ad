package descent

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func walkAt(t *testing.T, path string, v Visitor) error {
	t.Helper()
	return Walk(t.Context(), open(t, path), v)
}

func open(t *testing.T, path string) *Directory {
	t.Helper()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// chain makes depth directories called d, one in the other, and calls fill
// with a handle of each one's parent.
func chain(t *testing.T, top string, depth int, fill func(fd int)) {
	t.Helper()
	fd, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range depth {
		fill(fd)
		mkdirat(t, fd, "d")
		next, err := unix.Openat(fd, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(fd)
		fd = next
	}
	_ = unix.Close(fd)
}

func mkdirat(t *testing.T, fd int, name string) {
	t.Helper()
	if err := unix.Mkdirat(fd, name, 0o755); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func mount(t *testing.T, source, target, kind string, flags uintptr) {
	t.Helper()
	if err := unix.Mount(source, target, kind, flags, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func handles(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d, want %d: %.300q, want %.300q", what, len(got), len(want), got, want)
	}
}
