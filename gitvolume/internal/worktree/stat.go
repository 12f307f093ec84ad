package worktree

import (
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// Stat is by what a change of a file is noticed. Two are compared for equality alone,
// never for order: clocks jump, and anyone can set Modified.
type Stat struct {
	Size     int64
	Modified int64 // Nanoseconds since 1970, of the content, by anyone's word.
	Changed  int64 // Nanoseconds since 1970, of content or inode, by the kernel's word.
	Inode    uint64
	Mode     uint32 // With the type of file, as stat(2) gives it.
	Owner    uint32
	Group    uint32
}

// StatOf is what is remembered of what a directory shows.
func StatOf(seen descent.Stat) Stat {
	return Stat{
		Size: seen.Size, Modified: seen.Modified, Changed: seen.Changed, Inode: seen.Inode,
		Mode: seen.Mode, Owner: seen.Owner, Group: seen.Group,
	}
}

// granularity is the coarsest time stamp of a file system that is reckoned with. FAT
// counts in two seconds; ext4 and XFS by the kernel's tick of some milliseconds.
const granularity = 2 * time.Second

// Racy tells whether a file that had this Stat when it was read at that time may be
// changed again without its Stat showing it, because its time stamps would be the same.
// Such a file has to be read once more (C20).
func (s Stat) Racy(read time.Time) bool {
	settled := read.Add(-granularity).UnixNano()
	return s.Modified >= settled || s.Changed >= settled
}

func (s Stat) isRegular() bool   { return s.Mode&unix.S_IFMT == unix.S_IFREG }
func (s Stat) isLink() bool      { return s.Mode&unix.S_IFMT == unix.S_IFLNK }
func (s Stat) isDirectory() bool { return s.Mode&unix.S_IFMT == unix.S_IFDIR }
