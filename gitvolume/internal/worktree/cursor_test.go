package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/descent"
)

func openTree(t testing.TB, dir string) *Tree {
	t.Helper()
	tree, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func openCursor(t testing.TB, tree *Tree) *Cursor {
	t.Helper()
	c, err := tree.Cursor()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func mkdirs(t testing.TB, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func symlinkTo(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func inode(t testing.TB, path string) uint64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Lstat(path, &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Ino
}

func handles(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

func TestTheRootIsNoLink(t *testing.T) {
	top := t.TempDir()
	mkdirs(t, filepath.Join(top, "tree"))
	symlinkTo(t, "tree", filepath.Join(top, "link"))
	if _, err := Open(filepath.Join(top, "link")); err == nil {
		t.Error("a link was opened")
	}
	tree := openTree(t, filepath.Join(top, "tree"))
	if got := tree.Identity().Inode; got != inode(t, filepath.Join(top, "tree")) {
		t.Errorf("inode %d", got)
	}
}

func TestCursorGoesNowhereElse(t *testing.T) {
	top := t.TempDir()
	tree := filepath.Join(top, "tree")
	mkdirs(t, filepath.Join(tree, "a/b"), filepath.Join(top, "outside/b"))
	write(t, filepath.Join(tree, "file"), "x")
	symlinkTo(t, "../outside", filepath.Join(tree, "out"))
	symlinkTo(t, "a", filepath.Join(tree, "in"))
	c := openCursor(t, openTree(t, tree))
	isName := func(err error) bool { return errors.Is(err, ErrName) }
	for _, row := range []struct {
		path string
		want func(error) bool
	}{
		{".", func(err error) bool { return err == nil }},
		{"a/b", func(err error) bool { return err == nil }},
		{"a/b/..", isName},
		{"a/../a", isName},
		{"a/./b", isName},
		{"a//b", isName},
		{"/a", isName},
		{"..", isName},
		{"a\x00/b", isName},
		{"out", descent.Vanished},
		{"out/b", descent.Vanished},
		{"in/b", descent.Vanished},
		{"file", descent.Vanished},
		{"file/x", descent.Vanished},
		{"missing/x", descent.Vanished},
	} {
		dir, err := c.Go(row.path)
		if !row.want(err) {
			t.Errorf("%q: %v", row.path, err)
		}
		if err == nil {
			if self, err := dir.Self(); err != nil || self.Inode != inode(t, filepath.Join(tree, row.path)) {
				t.Errorf("%q: at inode %d, error %v", row.path, self.Inode, err)
			}
		}
	}
}

func TestCursorInADeepTree(t *testing.T) {
	const depth = 1500
	top := t.TempDir()
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	inodes := []uint64{inode(t, top)}
	for range depth {
		if err := unix.Mkdirat(at, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var stat unix.Stat_t
		if err := unix.Fstat(next, &stat); err != nil {
			t.Fatal(err)
		}
		inodes = append(inodes, stat.Ino)
		_ = unix.Close(at)
		at = next
	}
	_ = unix.Close(at)

	before := handles(t)
	c, err := openTree(t, top).Cursor()
	if err != nil {
		t.Fatal(err)
	}
	check := func(want int) {
		t.Helper()
		self, err := c.Here().Self()
		if err != nil || self.Inode != inodes[want] || c.Depth() != want {
			t.Fatalf("at depth %d, inode %d, want depth %d, inode %d; error %v", c.Depth(), self.Inode, want, inodes[want], err)
		}
	}
	for _, want := range []int{depth, 700, 701, 64, 63, 65, 0, depth} {
		path := "."
		if want > 0 {
			path = strings.Repeat("/d", want)[1:]
		}
		if _, err := c.Go(path); err != nil {
			t.Fatal(err)
		}
		check(want)
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		if now := handles(t); now-before > window+4 {
			t.Fatalf("%d handles open, %d before", now, before)
		}
	}
	for want := depth - 1; want >= 0; want-- {
		if err := c.Up(); err != nil {
			t.Fatal(err)
		}
		check(want)
	}
	c.Close()
	if now := handles(t); now > before+1 { // The Tree's own.
		t.Errorf("%d handles open, %d before", now, before)
	}
}

func TestCursorNoticesWhatMoved(t *testing.T) {
	deep := strings.Repeat("d/", 2*window) + "d"
	for _, row := range []struct {
		name string
		do   func(tree string) error
		from string
	}{
		{"moved away", func(tree string) error { return os.Rename(tree+"/a/b", tree+"/elsewhere") }, "a/b/c"},
		{"another in its place", func(tree string) error {
			return errors.Join(os.Rename(tree+"/a/b", tree+"/elsewhere"), os.MkdirAll(tree+"/a/b/c", 0o755))
		}, "a/b/c"},
		{"a link in its place", func(tree string) error {
			return errors.Join(os.Rename(tree+"/a/b", tree+"/elsewhere"), os.Symlink("../elsewhere", tree+"/a/b"))
		}, "a/b/c"},
	} {
		t.Run(row.name, func(t *testing.T) {
			tree := t.TempDir()
			mkdirs(t, filepath.Join(tree, "a/b/c"))
			c := openCursor(t, openTree(t, tree))
			if _, err := c.Go(row.from); err != nil {
				t.Fatal(err)
			}
			if err := row.do(tree); err != nil {
				t.Fatal(err)
			}
			if err := c.Check(); !errors.Is(err, ErrMoved) {
				t.Errorf("Check: %v", err)
			}
			if err := c.Still(); err != nil {
				t.Errorf("the lowest one did not move: %v", err)
			}
			if err := c.Up(); err != nil {
				t.Fatal(err)
			}
			if err := c.Still(); !errors.Is(err, ErrMoved) {
				t.Errorf("Still: %v", err)
			}
		})
	}
	t.Run("above the window", func(t *testing.T) {
		tree := t.TempDir()
		mkdirs(t, filepath.Join(tree, deep), filepath.Join(tree, "other", deep))
		c := openCursor(t, openTree(t, tree))
		if _, err := c.Go(deep); err != nil {
			t.Fatal(err)
		}
		if err := unix.Renameat2(unix.AT_FDCWD, tree+"/d", unix.AT_FDCWD, tree+"/other/d", unix.RENAME_EXCHANGE); err != nil {
			t.Fatal(err)
		}
		var err error
		for err == nil && c.Depth() > 0 {
			err = c.Up()
		}
		if !errors.Is(err, ErrMoved) || c.Depth() != 0 {
			t.Errorf("at depth %d: %v", c.Depth(), err)
		}
	})
}

func TestCursorDoesNotEnterMounts(t *testing.T) {
	mountns.Require(t)
	tree, elsewhere := t.TempDir(), t.TempDir()
	mkdirs(t, filepath.Join(tree, "bind"), filepath.Join(elsewhere, "inside"))
	if err := unix.Mount(elsewhere, tree+"/bind", "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(tree+"/bind", unix.MNT_DETACH)
	c := openCursor(t, openTree(t, tree))
	if _, err := c.Go("bind/inside"); !errors.Is(err, descent.ErrMount) {
		t.Errorf("error %v", err)
	}
}
