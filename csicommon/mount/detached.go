package mount

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// detached is the way of Linux 5.12 and later: the bind is made and given its flags
// where nobody can reach it, and then attached.
type detached struct{}

// detachedWorks calls each syscall with a descriptor that cannot be. EBADF means
// that the kernel knows the call, no filter takes it away, and mounting is allowed
// at all; so the probe leaves nothing behind.
func detachedWorks() bool {
	const none = -1
	_, tree := unix.OpenTree(none, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	set := unix.MountSetattr(none, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV})
	move := unix.MoveMount(none, "", none, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return errors.Is(tree, unix.EBADF) && errors.Is(set, unix.EBADF) && errors.Is(move, unix.EBADF)
}

func (detached) bind(source, target *os.File, o Options) error {
	defer runtime.KeepAlive(source)
	defer runtime.KeepAlive(target)
	// Not recursive: what else is mounted below the store is not the volume's.
	tree, err := unix.OpenTree(int(source.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("clone the source: %w", err)
	}
	defer unix.Close(tree)
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, attributes(o)); err != nil {
		return fmt.Errorf("set the flags: %w", err)
	}
	if err := unix.MoveMount(tree, "", int(target.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach the mount: %w", err)
	}
	return nil
}

func attributes(o Options) *unix.MountAttr {
	a := &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		// The clone of a shared mount is its peer: what is mounted below a pod's
		// target would show in the store, and be found there by what deletes copies.
		Propagation: unix.MS_PRIVATE,
	}
	if o.ReadOnly {
		a.Attr_set |= unix.MOUNT_ATTR_RDONLY
	} else {
		// Where the source's mount is read-only now (a disk after an error), its file system
		// keeps everybody from writing. The mount would do so for ever.
		a.Attr_clr |= unix.MOUNT_ATTR_RDONLY
	}
	if o.NoExec {
		a.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	if o.NoAtime {
		// The atime settings are one field; it must be cleared to be set.
		a.Attr_set |= unix.MOUNT_ATTR_NOATIME
		a.Attr_clr |= unix.MOUNT_ATTR__ATIME
	}
	return a
}
