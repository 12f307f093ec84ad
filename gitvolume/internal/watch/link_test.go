package watch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// noSymfollow is MS_NOSYMFOLLOW, of Linux 5.10.
const noSymfollow = 0x100

// notify follows a link that takes the place of a directory before it comes to watch
// it. Through a mount that follows none it cannot be led out of the tree.
func TestNoLinkIsFollowed(t *testing.T) {
	t.Parallel()
	mountns.Require(t)
	dir := mountns.SharedDir(t)
	a := attack{root: filepath.Join(dir, "tree"), dir: dir}
	bare := filepath.Join(dir, "bare", "tree")
	for _, made := range []string{a.root, bare, filepath.Join(dir, "outside")} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tries := a.succeeds(t, New(), 200)
	if tries == 0 {
		t.Skip("notify is too quick here to be led out of the tree")
	}
	t.Logf("led out of the tree in try %d", tries)
	if err := unix.Mount(a.root, bare, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", bare, "", unix.MS_BIND|unix.MS_REMOUNT|noSymfollow, ""); err != nil {
		t.Skipf("this kernel has no mounts that follow no links: %v", err)
	}
	trees := New()
	trees.Through(dir, filepath.Dir(bare))
	if tries := a.succeeds(t, trees, tries+4); tries != 0 {
		t.Fatalf("led out of the tree in try %d", tries)
	}
}

// A root that another mount does not show, as one that is mounted there itself, is watched
// where it is; and one that it shows is told by its own name, and gone when it is.
func TestThrough(t *testing.T) {
	mountns.Require(t)
	dir := mountns.SharedDir(t)
	trees := New()
	view := filepath.Join(dir, "view")
	for _, made := range []string{"dir/shown/d", "dir/mounted", "view"} {
		if err := os.MkdirAll(filepath.Join(dir, made), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("tmpfs", filepath.Join(dir, "dir/mounted"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(filepath.Join(dir, "dir"), view, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	trees.Through(filepath.Join(dir, "dir"), view)
	for name, through := range map[string]string{"shown": view, "mounted": filepath.Join(dir, "dir")} {
		root := filepath.Join(dir, "dir", name)
		o := start(t, trees, root)
		o.calm()
		if o.w.path != filepath.Join(through, name) || o.w.Root() != root {
			t.Errorf("%s is watched at %s, as %s", name, o.w.path, o.w.Root())
		}
		if err := os.MkdirAll(filepath.Join(root, "d/e"), 0o755); err != nil {
			t.Fatal(err)
		}
		o.calm()
		write(t, filepath.Join(root, "d/e/f"), "x")
		if paths, _ := o.announced(t); !slices.Equal(paths, []string{"d/e/f"}) {
			t.Errorf("announced %q", paths)
		}
		o.w.Stop()
	}
	o := start(t, trees, filepath.Join(dir, "dir/shown"))
	defer o.w.Stop()
	// The view shows it still.
	if err := os.Rename(filepath.Join(dir, "dir"), filepath.Join(dir, "moved")); err != nil {
		t.Fatal(err)
	}
	if h := o.w.TakeAll(); !h.Gone {
		t.Errorf("%+v", h)
	}
}

// attack is an application's attempt to have a directory outside watched.
type attack struct {
	root, dir string
	count     int
}

// succeeds returns in which try it does, or 0.
func (a *attack) succeeds(t *testing.T, trees *Trees, most int) int {
	t.Helper()
	o := start(t, trees, a.root)
	defer o.w.Stop()
	o.calm()
	outside, err := inodeOf(filepath.Join(a.dir, "outside"))
	if err != nil {
		t.Fatal(err)
	}
	for try := range most {
		a.try(t)
		// Once a directory made later is watched, notify got to the attempt most likely.
		last := filepath.Join(a.root, "last"+strconv.Itoa(a.count))
		if err := os.Mkdir(last, 0o755); err != nil {
			t.Fatal(err)
		}
		inode, err := inodeOf(last)
		if err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(patient)
		held := o.w.held()
		for ; !held.has(inode); held = o.w.held() {
			if time.Now().After(deadline) {
				t.Fatal("a directory is never watched")
			}
		}
		if held.has(outside) {
			return try + 1
		}
		o.converge()
	}
	return 0
}

// try makes a directory, moves it out while notify is busy, and puts a link there.
func (a *attack) try(t *testing.T) {
	t.Helper()
	a.count++
	busy := filepath.Join(a.dir, "busy"+strconv.Itoa(a.count))
	for i := range 100 {
		if err := os.MkdirAll(filepath.Join(busy, strconv.Itoa(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	place := filepath.Join(a.root, "place"+strconv.Itoa(a.count))
	for _, step := range []func() error{
		func() error { return os.Rename(busy, filepath.Join(a.root, filepath.Base(busy))) },
		func() error { return os.Mkdir(place, 0o755) },
		func() error { return os.Rename(place, filepath.Join(a.dir, filepath.Base(place))) },
		func() error { return os.Symlink(filepath.Join(a.dir, "outside"), place) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}
