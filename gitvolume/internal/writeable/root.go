package writeable

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Root recognises the directory that was made for a tree, also after a reboot, which
// numbers devices anew. An inode's number may be used again, the time when it was made
// not with it.
type Root struct {
	Inode uint64 `json:"inode"`
	// Born is in nanoseconds since 1970; 0 where the file system does not keep it.
	Born int64 `json:"born,omitempty"`
}

// rootOf is the directory at a path, of which a link is none.
func rootOf(dir string) (Root, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME|unix.STATX_TYPE, &stat); err != nil {
		return Root{}, fmt.Errorf("stat the tree's root: %w", err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return Root{}, fmt.Errorf("%s is no directory: %w", dir, ErrReplaced)
	}
	root := Root{Inode: stat.Ino}
	if stat.Mask&unix.STATX_BTIME != 0 {
		root.Born = stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)
	}
	return root, nil
}
