package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stackLimit bounds how many mounts Unbind takes off one target. The most that
	// was reported are 32,768 in all on one node, where each restart had doubled them.
	stackLimit = 10_000
	// busyPatience is how long a busy mount is tried again: another thread that only
	// looks at the path (a stat, a read of statistics) makes it busy for microseconds.
	busyPatience = 50 * time.Millisecond
	// namesRead bounds how many entries are read to name one of them.
	namesRead = 1000
)

// errNothingMounted is unmountOnce's answer when there was nothing to unmount.
var errNothingMounted = errors.New("nothing is mounted there")

// Unbind unmounts everything at target and removes the directory, if it is empty.
// A target that is missing, not mounted, or a filesystem that no longer answers is
// a success: the kubelet repeats the call until it gets one, and the pod stays
// Terminating until then. A file or a symlink at the target is left as it is, with
// a warning. Errors wrap ErrBusy, when something still uses the mount, or
// ErrNotEmpty, when the target holds files that were written while nothing was
// mounted: they are someone's, and nothing is deleted through a target.
func (s *System) Unbind(target string) error {
	point, err := Canonical(target)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("unbind: %w", err)
	}
	unlock, err := s.targets.Lock(context.Background(), point)
	if err != nil {
		return fmt.Errorf("unbind: %w", err)
	}
	defer unlock()
	if err := s.unmountAll(point); err != nil {
		return fmt.Errorf("unmount %q: %w", point, err)
	}
	return s.removeTarget(point)
}

// unmountAll asks nothing before it unmounts: the kernel finds a mount point
// without asking the filesystem on it, which may be dead.
func (s *System) unmountAll(point string) error {
	for range stackLimit {
		err := unmountPatiently(point)
		if errors.Is(err, errNothingMounted) {
			return s.confirmUnmounted(point)
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d mounts are stacked there", stackLimit)
}

// confirmUnmounted keeps EINVAL, which says both "no mount" and "a mount that this
// namespace may not take away", from being taken for a success.
func (s *System) confirmUnmounted(point string) error {
	mounted, err := s.isRoot(point)
	if err != nil {
		return err
	}
	if mounted {
		return fmt.Errorf("it was mounted by a more privileged namespace: %w", unix.EPERM)
	}
	return nil
}

// unmountPatiently takes the topmost mount off point.
func unmountPatiently(point string) error {
	deadline := time.Now().Add(busyPatience)
	for wait := 100 * time.Microsecond; ; wait *= 2 {
		err := unmountOnce(point)
		if !errors.Is(err, ErrBusy) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(wait)
	}
}

// unmountOnce never detaches lazily: the pod's processes would go on writing to
// what everybody else takes for unmounted.
func unmountOnce(point string) error {
	for {
		err := unix.Unmount(point, unix.UMOUNT_NOFOLLOW)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
			return errNothingMounted
		case errors.Is(err, unix.EBUSY):
			return fmt.Errorf("something uses it (an open file, a working directory or a mount below it): %w: %w", ErrBusy, err)
		}
		return err
	}
}

func (s *System) removeTarget(point string) error {
	err := unix.Rmdir(point)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.ENOTDIR):
		s.log.Warn("leaving the target as it is: only a directory is removed",
			"target", point, "error", fmt.Errorf("it is %s: %w", kindOf(point), ErrNotDirectory))
		return nil
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		return notEmpty(point)
	}
	return fmt.Errorf("remove the target %q: %w", point, err)
}

// notEmpty names the first entry by name, as the order of a directory may change
// and the error must not.
func notEmpty(point string) error {
	fd, err := unix.Open(point, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("remove the target %q: %w (and it cannot be read: %w)", point, ErrNotEmpty, err)
	}
	dir := os.NewFile(uintptr(fd), point)
	defer dir.Close()
	names, err := dir.Readdirnames(namesRead)
	if err != nil {
		return fmt.Errorf("remove the target %q: %w (and it cannot be read: %w)", point, ErrNotEmpty, err)
	}
	return fmt.Errorf("remove the target %q: it holds %q, written while nothing was mounted there; "+
		"nothing is ever deleted through a target, so move it away by hand: %w", point, slices.Min(names), ErrNotEmpty)
}
