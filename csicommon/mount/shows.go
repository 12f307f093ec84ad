package mount

import (
	"os"

	"golang.org/x/sys/unix"
)

// Shows returns the topmost mount at point, which must be canonical, when the root
// of that mount is the directory name of dir. It costs a fraction of Locate and
// Showing, for the calls that are only repeated. False means no more than that it
// could not be told so cheaply, as on kernels before 6.8.
func (s *System) Shows(point string, dir *os.File, name string) (Mount, bool) {
	const mask = unix.STATX_TYPE | unix.STATX_INO
	source, err := statxAt(int(dir.Fd()), name, mask)
	if err != nil || source.Mode&unix.S_IFMT != unix.S_IFDIR {
		return Mount{}, false
	}
	root, err := statxAt(unix.AT_FDCWD, point, mask|unix.STATX_MNT_ID_UNIQUE)
	if err != nil || root.Mask&unix.STATX_MNT_ID_UNIQUE == 0 || root.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return Mount{}, false
	}
	// No guess from device numbers: a directory is never linked twice, so the inode
	// is the directory.
	if source.Ino != root.Ino || source.Dev_major != root.Dev_major || source.Dev_minor != root.Dev_minor {
		return Mount{}, false
	}
	m, found, err := statmount(root.Mnt_id)
	return m, err == nil && found
}
