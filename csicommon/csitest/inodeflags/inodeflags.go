// Package inodeflags has a file or directory be what an application may make of it and root
// cannot change either: immutable, or to be added to alone.
//
// It must never leave behind a file that the test's directory could not be removed with.
package inodeflags

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Flags of linux/fs.h.
const (
	Immutable  = 0x10
	AppendOnly = 0x20
)

// Fix gives the file that one of the flags, or none, until the test ends. A test that cannot
// is skipped: some file systems have no flags, and not every root may set them.
func Fix(t testing.TB, path string, flag int) {
	t.Helper()
	if err := Set(path, flag); err != nil {
		t.Skipf("setting flags on this file system and as this user: %v", err)
	}
	t.Cleanup(func() { _ = Set(path, 0) }) // Where it is still there.
}

// Set has the file have that one of the flags, or none of them.
func Set(path string, flag int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	flags, err := unix.IoctlGetInt(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags&^(Immutable|AppendOnly)|flag)
}
