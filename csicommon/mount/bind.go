package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Bind shows the directory source at target. source is a handle that the caller
// opened without following links (O_PATH does) and keeps; target is an existing
// directory with nothing mounted on it, or the error wraps ErrNotDirectory,
// fs.ErrNotExist or ErrMounted. The flags are on the mount before anyone sees it:
// a remount would stay in this namespace and leave the kubelet's side writable.
// On error nothing is mounted.
func (s *System) Bind(source *os.File, target string, o Options) error {
	point, err := Canonical(target)
	if err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	unlock, err := s.targets.Lock(context.Background(), point)
	if err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	defer unlock()

	// A second bind would hide the first, and each restart of the kubelet would add
	// one, doubled by every peer, until the node can mount nothing more.
	if err := s.requireUnmounted(point); err != nil {
		return fmt.Errorf("bind onto %q: %w", point, err)
	}
	at, err := openTarget(point)
	if err != nil {
		return fmt.Errorf("bind onto %q: %w", point, err)
	}
	defer at.Close()

	attached := s.table.attaching()
	defer attached()
	if err := s.binds.bind(source, at, o); err != nil {
		return fmt.Errorf("bind onto %q: %w", point, undo(point, err))
	}
	if err := s.verify(point, o); err != nil {
		return fmt.Errorf("bind onto %q: %w", point, undo(point, err))
	}
	return nil
}

// openTarget refuses a symlink instead of following it: the link may have been put
// there to have the driver mount over some other directory of the node.
func openTarget(point string) (*os.File, error) {
	fd, err := openPath(point, unix.O_NOFOLLOW|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("the target is %s: %w", kindOf(point), ErrNotDirectory)
	}
	if err != nil {
		return nil, fmt.Errorf("open the target: %w", err)
	}
	return os.NewFile(uintptr(fd), point), nil
}

// openPath opens path as a place only, which asks nothing of a filesystem that is dead.
func openPath(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func kindOf(path string) string {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return "no directory"
	case info.Mode()&fs.ModeSymlink != 0:
		return "a symbolic link, which is not followed"
	case info.Mode().IsRegular():
		return "a regular file"
	default:
		return "a special file"
	}
}

func (s *System) requireUnmounted(point string) error {
	mounted, err := s.isRoot(point)
	if err != nil {
		return err
	}
	if mounted {
		return ErrMounted
	}
	return nil
}

// verify looks at what is mounted now: an old kernel ignores flags it does not
// know on a bind, and a pod that may not write must not find out that it can.
func (s *System) verify(point string, o Options) error {
	m, mounted, err := s.table.at(point)
	switch {
	case err != nil:
		return fmt.Errorf("verify the mount: %w", err)
	case !mounted:
		return errors.New("verify the mount: it is not in the mount table")
	case m.Deleted:
		return fmt.Errorf("the source directory was deleted: %w", fs.ErrNotExist)
	case o.ReadOnly && !m.ReadOnly:
		return ErrReadOnly
	}
	return nil
}

// undo takes away what a failed bind may have left at point, where nothing was
// mounted before, and returns the failure.
func undo(point string, failure error) error {
	err := unmountPatiently(point)
	if err == nil || errors.Is(err, errNothingMounted) {
		return failure
	}
	return fmt.Errorf("%w (and the mount could not be taken away again: %w)", failure, err)
}
