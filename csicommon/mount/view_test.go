package mount

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// mustView makes a view of dir, or skips where the kernel has none.
func (n *node) mustView(t *testing.T, dir string) *View {
	t.Helper()
	v, err := n.NewView(handle(t, dir))
	if errors.Is(err, ErrFollowsLinks) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func inode(t *testing.T, path string) [2]uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return [2]uint64{st.Dev, st.Ino}
}

func TestAViewFollowsNoLink(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		dir := n.volume(t, "v")
		mkdir(t, filepath.Join(dir, "tree/below"))
		v := n.mustView(t, dir)
		for _, name := range []string{".", "tree", "tree/below"} {
			if got, want := inode(t, filepath.Join(v.Path(), name)), inode(t, filepath.Join(dir, name)); got != want {
				t.Errorf("%s is the inode %v in the view, want %v", name, got, want)
			}
		}
		outside := mkdir(t, filepath.Join(n.store, "outside/below"))
		// Made when the view was there already, as by an application.
		if err := errors.Join(os.Rename(filepath.Join(dir, "tree"), filepath.Join(dir, "moved")),
			os.Symlink(filepath.Dir(outside), filepath.Join(dir, "tree"))); err != nil {
			t.Fatal(err)
		}
		if _, err := os.ReadDir(filepath.Join(dir, "tree")); err != nil {
			t.Fatalf("the link leads nowhere without a view: %v", err)
		}
		for _, name := range []string{"tree", "tree/below"} {
			if _, err := os.ReadDir(filepath.Join(v.Path(), name)); !errors.Is(err, unix.ELOOP) {
				t.Errorf("list %s through the link: %v, want ELOOP", name, err)
			}
		}
		if err := os.Mkdir(filepath.Join(v.Path(), "x"), 0o700); !errors.Is(err, unix.EROFS) {
			t.Errorf("write through the view: %v, want EROFS", err)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Directories of the view are bound, moved and removed as if there were none, and it is
// no mount of any of them.
func TestAViewIsInNobodysWay(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		dir, target := n.volume(t, "volumes"), n.target(t, "t")
		volume := mkdir(t, filepath.Join(dir, "v"))
		before, peer := mountCount(t), startPeer(t)
		v := n.mustView(t, dir)
		n.mustBind(t, volume, target, Options{})
		if got := n.points(t, n.locate(t, volume)); len(got) != 1 || got[target] != 1 {
			t.Errorf("the volume is shown at %v, want its target alone", got)
		}
		for _, point := range []string{v.Path(), filepath.Join(v.Path(), "v")} {
			if seen := mountsOf(t, peer, point); len(seen) != 0 {
				t.Errorf("the peer sees %+v", seen)
			}
		}
		held, err := os.Open(filepath.Join(v.Path(), "v"))
		if err != nil {
			t.Fatal(err)
		}
		defer held.Close()
		n.mustUnbind(t, target)
		moved := filepath.Join(n.store, "moved")
		if err := errors.Join(os.Rename(volume, moved), os.Remove(moved)); err != nil {
			t.Errorf("remove a directory of the view: %v", err)
		}
		if _, err := n.NewView(handle(t, dir)); !errors.Is(err, ErrMounted) {
			t.Errorf("a second view: %v, want ErrMounted", err)
		}
		// With a directory of it open.
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		// The classic way keeps its own room.
		if n.binds == (detached{}) && mountCount(t) != before {
			t.Errorf("%d mounts more than before", mountCount(t)-before)
		}
		requireMounts(t, v.room.path, 0)
		if seen := mountsOf(t, peer, v.room.path); len(seen) != 0 {
			t.Errorf("the peer keeps %+v", seen)
		}
		if err := n.mustView(t, dir).Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAViewThatAKilledProcessLeftIsTakenAway(t *testing.T) {
	n := newClassic(t)
	dir := n.volume(t, "v")
	kept := write(t, filepath.Join(dir, "kept"))
	before := mountCount(t)
	for range 3 {
		n.mustView(t, dir)
		// What is left is the mount alone.
		n.views = &room{path: n.views.path}
		n.hasView.Store(false)
	}
	v := n.mustView(t, dir)
	if got := mountCount(t) - before; got != 2 {
		t.Errorf("%d mounts more than before, want the room and the view", got)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	if got := mountCount(t) - before; got != 0 {
		t.Errorf("%d mounts more than before", got)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

func TestAMountThatFollowsLinksIsNoView(t *testing.T) {
	n := newClassic(t)
	if err := requireNoFollow(n.store); !errors.Is(err, ErrFollowsLinks) {
		t.Errorf("%v, want ErrFollowsLinks", err)
	}
	// On any error nothing is mounted, and the next one is tried.
	before := mountCount(t)
	for range 2 {
		if _, err := n.NewView(handle(t, write(t, filepath.Join(n.store, "file")))); err == nil {
			t.Error("there is a view of a file")
		}
		if got := mountCount(t) - before; got != 0 {
			t.Errorf("%d mounts more than before", got)
		}
	}
}
