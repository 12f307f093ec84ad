package descent

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrMount says that a name is the place of a mount, which is not entered.
var ErrMount = errors.New("is a mount")

const opening = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// Enter opens the directory name, one that Next gave. A mount is ErrMount; see
// Vanished for what is no directory.
func (d *Directory) Enter(name string) (*Directory, error) {
	how := unix.OpenHow{
		Flags:   opening,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	}
	fd, err := restarted(func() (int, error) { return unix.Openat2(d.fd, name, &how) })
	switch {
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		// Linux before 5.6, or a seccomp filter that does not know the call.
		fd, err = d.openChecked(name)
	case errors.Is(err, unix.EXDEV):
		err = ErrMount
	}
	if err != nil {
		return nil, fmt.Errorf("open directory: %w", err)
	}
	return &Directory{name: name, parent: d, depth: d.depth + 1, fd: fd, tree: d.tree}, nil
}

// openChecked is what Enter does where there is no openat2: O_NOFOLLOW keeps
// it from following name, and what it opened is given up if it is a mount.
func (d *Directory) openChecked(name string) (int, error) {
	// Asking first keeps a mount whose server is dead from being opened.
	before, err := d.Stat(name)
	if err != nil {
		return -1, err
	}
	if before.Mount {
		return -1, ErrMount
	}
	fd, err := openat(d.fd, name)
	if err != nil {
		return -1, err
	}
	var stx unix.Statx_t
	err = statx(fd, "", &stx)
	if err == nil && d.isMount(&stx) {
		err = ErrMount
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func openat(dir int, name string) (int, error) {
	return restarted(func() (int, error) { return unix.Openat(dir, name, opening, 0) })
}

// restarted repeats a call that a signal interrupted: the Go runtime preempts
// with signals, and FUSE and NFS return EINTR for them.
func restarted(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
