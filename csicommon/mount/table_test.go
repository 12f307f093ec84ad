package mount

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAtTellsTheTopmostMount(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		target := n.target(t, "t")
		n.mustBind(t, n.volume(t, "below"), target, Options{})
		below, _, err := n.At(target)
		if err != nil {
			t.Fatal(err)
		}
		mustMount(t, n.volume(t, "top"), target, "", unix.MS_BIND)
		mustMount(t, "none", target, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY)
		mustMount(t, "none", target, "", unix.MS_PRIVATE)

		top, mounted, err := n.At(target)
		if err != nil || !mounted {
			t.Fatalf("At = %t, %v", mounted, err)
		}
		want := Mount{ID: top.ID, Location: n.locate(t, n.volume(t, "top")), Point: target, ReadOnly: true}
		if top != want || top.ID == below.ID {
			t.Errorf("At = %+v, want %+v", top, want)
		}
		want = Mount{ID: below.ID, Location: n.locate(t, n.volume(t, "below")), Point: target, Shared: true}
		if below != want {
			t.Errorf("before, At = %+v, want %+v", below, want)
		}
		info := mountsAt(t, target)[0]
		if int(top.Major) != info.Major || int(top.Minor) != info.Minor {
			t.Errorf("device %d:%d, mountinfo has %d:%d", top.Major, top.Minor, info.Major, info.Minor)
		}
	})
}

// The flag of a mount is not that of its filesystem.
func TestReadOnlyFilesystemIsNotAReadOnlyMount(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		target := n.target(t, "t")
		if err := unix.Mount("tmpfs", target, "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		mustMount(t, "none", target, "", unix.MS_REMOUNT|unix.MS_RDONLY)
		mustMount(t, "none", target, "", unix.MS_REMOUNT|unix.MS_BIND)
		if m, mounted, err := n.At(target); err != nil || !mounted || m.ReadOnly {
			t.Errorf("At = %+v, %t, %v, want a mount that is not read-only", m, mounted, err)
		}
		if err := os.WriteFile(filepath.Join(target, "f"), nil, 0o600); !errors.Is(err, unix.EROFS) {
			t.Errorf("the filesystem is not read-only: %v", err)
		}
	})
}

func TestRequireShared(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		inShared := n.target(t, "pods")
		private := n.target(t, "private")
		mustMount(t, private, private, "", unix.MS_BIND)
		mustMount(t, "none", private, "", unix.MS_PRIVATE)
		slave := n.target(t, "slave")
		mustMount(t, slave, slave, "", unix.MS_BIND)
		mustMount(t, "none", slave, "", unix.MS_SLAVE)
		link := filepath.Join(n.kubelet, "link")
		if err := os.Symlink(private, link); err != nil {
			t.Fatal(err)
		}

		for _, dir := range []string{n.kubelet, inShared} {
			if err := n.RequireShared(dir); err != nil {
				t.Errorf("RequireShared(%q): %v", dir, err)
			}
		}
		for _, dir := range []string{private, slave, mkdir(t, filepath.Join(private, "below")), link} {
			err := n.RequireShared(dir)
			if !errors.Is(err, ErrNotShared) {
				t.Errorf("RequireShared(%q): %v, want ErrNotShared", dir, err)
				continue
			}
			for _, want := range []string{
				dir, "shared mount", "propagation",
				"mount --bind " + dir + " " + dir + " && mount --make-rshared " + dir, "mountPropagation: Bidirectional",
			} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message lacks %q: %v", want, err)
				}
			}
		}
		if err := n.RequireShared(filepath.Join(n.kubelet, "missing")); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrNotShared) {
			t.Errorf("RequireShared of a missing directory: %v", err)
		}
	})
}

func TestLocateIsTheSameThroughEveryMount(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume := n.volume(t, "copies/v")
		want := Location{Path: "/copies/v"}
		info := mountsAt(t, n.store)[0]
		want.Major, want.Minor = uint32(info.Major), uint32(info.Minor)

		whole, part, itself := n.target(t, "whole"), n.target(t, "part"), n.target(t, "itself")
		mustMount(t, n.store, whole, "", unix.MS_BIND)
		mustMount(t, filepath.Join(n.store, "copies"), part, "", unix.MS_BIND)
		mustMount(t, volume, itself, "", unix.MS_BIND)
		for _, path := range []string{volume, filepath.Join(whole, "copies/v"), filepath.Join(part, "v"), itself} {
			if got := n.locate(t, path); got != want {
				t.Errorf("Locate(%q) = %+v, want %+v", path, got, want)
			}
		}
		if got := n.locate(t, n.store); got.Path != "/" {
			t.Errorf("Locate of the filesystem's root = %+v", got)
		}
		if points := n.points(t, want); len(points) != 1 || points[itself] != 1 {
			t.Errorf("Showing found %v, want %q alone", points, itself)
		}
	})
}

// Whatever filesystem the machine has: what Locate says is what a bind shows.
func TestLocateAgreesWithTheTable(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) string{
		"the machine's own": func(t *testing.T) string { return realTempDir(t) },
		"overlay":           newOverlay,
		"a filesystem below another path of itself": func(t *testing.T) string {
			dir := newFilesystem(t)
			inner := mkdir(t, filepath.Join(dir, "x", "y"))
			mustMount(t, filepath.Join(dir, "x"), inner, "", unix.MS_BIND)
			return inner
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, n *node) {
				dir := store(t)
				target := n.target(t, "t")
				n.mustBind(t, dir, target, Options{})
				m, mounted, err := n.At(target)
				if err != nil || !mounted {
					t.Fatalf("At = %t, %v", mounted, err)
				}
				if loc := n.locate(t, dir); loc != m.Location {
					t.Errorf("Locate = %+v, the bind shows %+v", loc, m.Location)
				}
				if points := n.points(t, m.Location); points[target] != 1 {
					t.Errorf("Showing found %v, want %q among them", points, target)
				}
			})
		})
	}
}

func TestLocateOfTheProcessRoot(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		m, err := n.table.holding(handle(t, "/"))
		if err != nil || m.Point != "/" {
			t.Fatalf("the mount of / is %+v, %v", m, err)
		}
		if loc := n.locate(t, "/"); loc != m.Location {
			t.Errorf("Locate = %+v, want %+v", loc, m.Location)
		}
	})
}

func newOverlay(t *testing.T) string {
	t.Helper()
	dir := newFilesystem(t)
	for _, part := range []string{"lower/volume", "upper", "work", "merged"} {
		mkdir(t, filepath.Join(dir, part))
	}
	merged := filepath.Join(dir, "merged")
	data := "lowerdir=" + dir + "/lower,upperdir=" + dir + "/upper,workdir=" + dir + "/work,userxattr"
	if err := unix.Mount("overlay", merged, "overlay", 0, data); err != nil {
		t.Skipf("no overlay can be mounted here: %v", err)
	}
	return filepath.Join(merged, "volume")
}

func TestLocateOfDeletedDirectories(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		for _, name := range []string{"gone", "gone too (deleted)"} {
			f := handle(t, n.volume(t, name))
			remove(t, f.Name())
			if loc, err := n.Locate(f); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Locate of %q once deleted = %+v, %v, want fs.ErrNotExist", name, loc, err)
			}
		}
		// One that is there, named as the kernel would call the deleted one beside it.
		f := handle(t, n.volume(t, "pair"))
		other := n.volume(t, "pair (deleted)")
		remove(t, f.Name())
		if loc, err := n.Locate(f); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Locate of the deleted one = %+v, %v, want fs.ErrNotExist", loc, err)
		}
		if loc := n.locate(t, other); loc.Path != "/pair (deleted)" {
			t.Errorf("Locate of the other = %+v", loc)
		}
	})
}

func TestShowingFindsMountsOfDeletedDirectories(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume := n.volume(t, "v")
		loc := n.locate(t, volume)
		one, two := n.target(t, "1"), n.target(t, "2")
		n.mustBind(t, volume, one, Options{})
		remove(t, volume)
		if points := n.points(t, loc); len(points) != 1 || points["-"+one] != 1 {
			t.Errorf("after the deletion Showing found %v, want %q as deleted", points, one)
		}
		n.volume(t, "v")
		n.mustBind(t, volume, two, Options{})
		if points := n.points(t, loc); len(points) != 2 || points["-"+one] != 1 || points[two] != 1 {
			t.Errorf("with a new directory Showing found %v, want %q as deleted and %q", points, one, two)
		}
		if err := n.Rescan(); err != nil {
			t.Fatal(err)
		}
		if points := n.points(t, loc); len(points) != 2 {
			t.Errorf("after Rescan Showing found %v, want both", points)
		}
		n.mustUnbind(t, one)
		if points := n.points(t, loc); len(points) != 1 || points[two] != 1 {
			t.Errorf("after Unbind Showing found %v, want %q", points, two)
		}
	})
}

func TestDirectoryNamedDeletedIsNotDeleted(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		for _, name := range []string{"v/deleted", "deleted", "v (deleted)", "v/deleted/deleted"} {
			volume, target := n.volume(t, name), n.target(t, name)
			n.mustBind(t, volume, target, Options{})
			if points := n.points(t, n.locate(t, volume)); len(points) != 1 || points[target] != 1 {
				t.Errorf("a directory named %q is shown at %v", name, points)
			}
			n.mustUnbind(t, target)
		}
		if points := n.points(t, n.locate(t, n.volume(t, "v"))); len(points) != 0 {
			t.Errorf("the directory above is shown at %v", points)
		}
	})
}

func TestShowingFollowsOtherProcesses(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume := n.volume(t, "v")
		loc := n.locate(t, volume)
		want := make(map[string]int)
		// A subPath or a container's volume is a bind of the bind, which nobody announces.
		for _, name := range []string{"a", "b", "c"} {
			point := n.target(t, name)
			mustMount(t, volume, point, "", unix.MS_BIND)
			mustMount(t, n.volume(t, "other"), n.target(t, name+"-other"), "", unix.MS_BIND)
			want[point]++
			if got := n.points(t, loc); len(got) != len(want) || got[point] != 1 {
				t.Fatalf("Showing found %v, want %v", got, want)
			}
		}
		for point := range want {
			if err := unix.Unmount(point, 0); err != nil {
				t.Fatal(err)
			}
			delete(want, point)
			if got := n.points(t, loc); len(got) != len(want) || got[point] != 0 {
				t.Fatalf("Showing found %v, want %v", got, want)
			}
		}
	})
}

func TestRescanFollowsRenames(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume, target := n.volume(t, "old"), n.target(t, "t")
		from := n.locate(t, volume)
		n.mustBind(t, volume, target, Options{})
		renamed := filepath.Join(n.store, "new")
		if err := os.Rename(volume, renamed); err != nil {
			t.Fatal(err)
		}
		to := n.locate(t, renamed)
		if points := n.points(t, from); len(points) != 0 {
			t.Errorf("under its old name it is shown at %v", points)
		}
		if err := n.Rescan(); err != nil {
			t.Fatal(err)
		}
		if points := n.points(t, to); points[target] != 1 {
			t.Errorf("under its new name it is shown at %v, want %q", points, target)
		}
	})
}

// Many volumes at once, with readers and rescans between them: a bind that has
// returned is found, and one that was taken away is not.
func TestConcurrentVolumes(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		var volumes, others sync.WaitGroup
		ended := make(chan struct{})
		others.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
				}
				if err := n.Rescan(); err != nil {
					t.Errorf("Rescan: %v", err)
					return
				}
			}
		})
		for i := range 8 {
			name := "v" + string(rune('a'+i))
			volume, target := n.volume(t, name), n.target(t, name)
			loc, source := n.locate(t, volume), handle(t, volume)
			volumes.Go(func() {
				for round := range 15 {
					if err := errors.Join(os.MkdirAll(target, 0o700), n.Bind(source, target, Options{ReadOnly: round%2 == 0})); err != nil {
						t.Errorf("Bind: %v", err)
						return
					}
					if m, err := n.Showing(loc); err != nil || len(m) != 1 || m[0].Point != target {
						t.Errorf("bound, Showing = %+v, %v", m, err)
					}
					if err := n.Unbind(target); err != nil {
						t.Errorf("Unbind: %v", err)
					}
					if m, err := n.Showing(loc); err != nil || len(m) != 0 {
						t.Errorf("unbound, Showing = %+v, %v", m, err)
					}
				}
			})
		}
		volumes.Wait()
		close(ended)
		others.Wait()
	})
}
