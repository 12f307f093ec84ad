package mount

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/manyfiles"
)

// Others mount on the node too. One of their mounts that cannot be described as a whole
// takes nothing away of what is known of every other one.
func TestOddMountsHideNoOther(t *testing.T) {
	for name, mount := range map[string]func(t *testing.T, n *node){
		// As a pod does with the directory that it has by subPath.
		"its root was moved too deep to be told": func(t *testing.T, n *node) {
			moved, point := n.volume(t, "theirs/part"), n.target(t, "subpath")
			mustMount(t, moved, point, "", unix.MS_BIND)
			t.Cleanup(func() { _ = unix.Unmount(point, 0) })
			bottom := manyfiles.Deep(t, n.volume(t, "theirs/deep"))
			if err := unix.Renameat(unix.AT_FDCWD, moved, int(bottom.Fd()), "part"); err != nil {
				t.Fatal(err)
			}
			if mounted, err := n.IsMount(point); err != nil || !mounted {
				t.Errorf("IsMount = %t, %v", mounted, err)
			}
			if m, mounted, err := n.At(point); err != nil || !mounted || m.Point != point {
				t.Errorf("At has point %q, %t, %v", m.Point, mounted, err)
			}
		},
		"its point was moved out of the mount above": func(t *testing.T, n *node) {
			above := n.target(t, "above")
			mustMount(t, n.volume(t, "theirs"), above, "", unix.MS_BIND)
			point := mkdir(t, filepath.Join(above, "d", "point"))
			mustMount(t, "tmpfs", point, "tmpfs", 0)
			t.Cleanup(func() { _ = unix.Unmount(above, unix.MNT_DETACH) })
			if err := os.Rename(filepath.Join(n.store, "theirs", "d"), filepath.Join(n.store, "d")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, n *node) {
				volume, target := n.volume(t, "v"), n.target(t, "t")
				loc := n.locate(t, volume)
				mount(t, n)
				n.mustBind(t, volume, target, Options{})
				t.Cleanup(func() { _ = unix.Unmount(target, 0) })
				for _, look := range []func() error{func() error { return nil }, n.Rescan} {
					if err := look(); err != nil {
						t.Fatalf("Rescan: %v", err)
					}
					if points := n.points(t, loc); len(points) != 1 || points[target] != 1 {
						t.Errorf("Showing found %v, want %q", points, target)
					}
				}
				if err := n.RequireShared(n.kubelet); err != nil {
					t.Errorf("RequireShared: %v", err)
				}
				if _, native := n.table.(*index); native {
					if _, err := newIndex(); err != nil {
						t.Errorf("a new process cannot read the table: %v", err)
					}
				}
				n.mustUnbind(t, target)
			})
		})
	}
}
