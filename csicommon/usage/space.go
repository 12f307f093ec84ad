package usage

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Space is a file system's: bytes and inodes in all, and what of them an application can
// still take.
type Space struct{ Bytes, AvailableBytes, Inodes, AvailableInodes int64 }

// SpaceOf asks the file system that an open directory is on. It may hang as long as the
// disk does.
func SpaceOf(dir *os.File) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return Space{}, fmt.Errorf("ask the file system of %q for its space: %w", dir.Name(), err)
	}
	return Space{
		Bytes:           int64(st.Blocks) * st.Bsize,
		AvailableBytes:  int64(st.Bavail) * st.Bsize,
		Inodes:          int64(st.Files),
		AvailableInodes: int64(st.Ffree),
	}, nil
}
