package watch

import (
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// minorBits is how many bits of a device number the kernel itself gives the minor.
const minorBits = 20

// kernelDevice is the number of the root's filesystem as inotify's fdinfo shows it:
// the one in the mount table. On btrfs stat(2) gives another, for each subvolume.
// Where the table does not tell, stat's is taken; then the worst is that watches seem
// to be missing.
func kernelDevice(root string, self Inode) uint64 {
	major, minor := unix.Major(self.Device), unix.Minor(self.Device)
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, root, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &stat)
	if err == nil && stat.Mask&unix.STATX_MNT_ID != 0 {
		mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
			return uint64(m.ID) != stat.Mnt_id, false
		})
		if err == nil && len(mounts) == 1 {
			major, minor = uint32(mounts[0].Major), uint32(mounts[0].Minor)
		}
	}
	return uint64(major)<<minorBits | uint64(minor)
}
