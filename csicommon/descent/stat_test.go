package descent

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestStatSaysWhatTheKernelSays(t *testing.T) {
	top := t.TempDir()
	write(t, filepath.Join(top, "file"))
	mkdir(t, filepath.Join(top, "directory"))
	symlink(t, "/nowhere", filepath.Join(top, "link"))
	if err := os.Chmod(filepath.Join(top, "file"), 0o4750); err != nil {
		t.Fatal(err)
	}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(top, "file"), []unix.Timespec{{Sec: 1}, {Sec: -5, Nsec: 7}}, 0); err != nil {
		t.Fatal(err)
	}
	root := open(t, top)
	defer root.Close()
	for _, name := range []string{"file", "directory", "link"} {
		var want unix.Stat_t
		if err := unix.Lstat(filepath.Join(top, name), &want); err != nil {
			t.Fatal(err)
		}
		got, err := root.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got.Mode != want.Mode || got.Owner != want.Uid || got.Group != want.Gid || got.Size != want.Size || got.Inode != want.Ino ||
			got.Modified != unix.TimespecToNsec(want.Mtim) || got.Changed != unix.TimespecToNsec(want.Ctim) || got.Directory != (name == "directory") {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	fd, err := unix.Openat(root.Fd(), "file", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	open, err := root.Look(fd)
	if byName, failed := root.Stat("file"); err != nil || failed != nil || open != byName {
		t.Errorf("open: %+v, by name: %+v; errors %v, %v", open, byName, err, failed)
	}
}
