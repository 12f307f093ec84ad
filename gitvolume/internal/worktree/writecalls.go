package worktree

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrFileSystem says that the tree's file system cannot exchange two names, or refuse to
// replace one, in one step. Without that a write of the application could be lost.
var ErrFileSystem = errors.New("the file system cannot exchange names")

// uninterrupted repeats a call that a signal interrupted.
func uninterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// exchange swaps what two names of a directory stand for, in one step.
func exchange(dir int, a, b string) error { return renamed(dir, a, b, unix.RENAME_EXCHANGE) }

// renameNew gives an entry another name, which must not be taken: then it is EEXIST.
func renameNew(dir int, from, to string) error { return renamed(dir, from, to, unix.RENAME_NOREPLACE) }

func renamed(dir int, from, to string, how uint) error {
	err := uninterrupted(func() error { return unix.Renameat2(dir, from, dir, to, how) })
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", ErrFileSystem, err)
	}
	return err
}

func unlink(dir int, name string) error {
	return uninterrupted(func() error { return unix.Unlinkat(dir, name, 0) })
}

// removeEmpty removes a directory, if there is nothing in it: else it is ENOTEMPTY or
// EEXIST.
func removeEmpty(dir int, name string) error {
	return uninterrupted(func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

// notEmpty tells that a directory was not removed because something is in it.
func notEmpty(err error) bool {
	return errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)
}

func syncHandle(fd int) error {
	return uninterrupted(func() error { return unix.Fsync(fd) })
}

// byHandle is a path that leads to what the handle is open at, and nowhere else, for
// calls that take no handle or none of O_PATH.
func byHandle(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// given is permitted for a change of owner and group, of which a user namespace may not
// have all there are.
func given(err error) error {
	if errors.Is(err, unix.EINVAL) {
		return nil
	}
	return permitted(err)
}

// mayNotGive tells that owner and group cannot be given together: then the group alone
// may.
func mayNotGive(err error) bool { return errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) }

// permitted is the error of a change of owner, mode or attributes, but for one that says
// that an ordinary user must not: such a driver keeps what it can.
func permitted(err error) error {
	if errors.Is(err, unix.EPERM) {
		return nil
	}
	return err
}
