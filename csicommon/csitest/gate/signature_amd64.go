package gate

import "golang.org/x/sys/unix"

// ofPlatform are the calls that the C library makes here, and that later platforms left out.
func ofPlatform() map[uint32]signature {
	return map[uint32]signature{
		unix.SYS_OPEN:     {"open", Opens, path(0)},
		unix.SYS_CREAT:    {"creat", Opens, path(0)},
		unix.SYS_RENAME:   {"rename", Makes, []argument{{-1, 0}, {-1, 1}}},
		unix.SYS_MKDIR:    {"mkdir", Makes, path(0)},
		unix.SYS_LINK:     {"link", Makes, []argument{{-1, 0}, {-1, 1}}},
		unix.SYS_SYMLINK:  {"symlink", Makes, path(1)},
		unix.SYS_UNLINK:   {"unlink", Removes, path(0)},
		unix.SYS_RMDIR:    {"rmdir", Removes, path(0)},
		unix.SYS_STAT:     {"stat", Looks, path(0)},
		unix.SYS_LSTAT:    {"lstat", Looks, path(0)},
		unix.SYS_ACCESS:   {"access", Looks, path(0)},
		unix.SYS_READLINK: {"readlink", Looks, path(0)},
		unix.SYS_CHMOD:    {"chmod", Marks, path(0)},
	}
}
