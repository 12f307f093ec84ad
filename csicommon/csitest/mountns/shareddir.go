package mountns

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// SharedDir returns a new directory that is a shared mount, as a kubelet's is:
// what is mounted below it shows in namespaces copied from this one. Its path
// holds no symlink. The test's cleanup removes it with all that is mounted below.
func SharedDir(t testing.TB) string {
	t.Helper()
	Require(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatalf("resolve the temporary directory: %v", err)
	}
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatalf("bind %s on itself: %v", dir, err)
	}
	// Registered after t.TempDir's own cleanup and so run before it: that one
	// deletes through whatever is still mounted.
	t.Cleanup(func() { UnmountBelow(t, dir) })
	if err := unix.Mount("none", dir, "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		t.Fatalf("make %s a shared mount: %v", dir, err)
	}
	return dir
}

// UnmountBelow unmounts dir and all that is mounted below it, last mounted first.
// dir must be an absolute path without symlinks.
func UnmountBelow(t testing.TB, dir string) {
	t.Helper()
	for {
		points := mountedBelow(t, dir)
		if len(points) == 0 {
			return
		}
		unmounted := 0
		for i := len(points) - 1; i >= 0; i-- {
			if unmount(points[i]) == nil {
				unmounted++
			}
		}
		if unmounted == 0 {
			t.Errorf("unmount below %s: %q stay mounted", dir, points)
			return
		}
	}
}

// unmount detaches what is busy: a process that a failed test left behind must
// not make its cleanup delete through a mount.
func unmount(point string) error {
	if err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW); err == nil {
		return nil
	}
	return unix.Unmount(point, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
}

func mountedBelow(t testing.TB, dir string) []string {
	t.Helper()
	infos, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		return i.Mountpoint != dir && !strings.HasPrefix(i.Mountpoint, dir+"/"), false
	})
	if err != nil {
		t.Fatalf("read the mount table: %v", err)
	}
	var points []string
	for _, info := range infos {
		points = append(points, info.Mountpoint)
	}
	return points
}
