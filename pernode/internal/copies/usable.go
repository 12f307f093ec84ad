package copies

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Usable returns nil while copies can be made and found here. A full disk is
// usable: the copies that exist are served.
func (s *Store) Usable(context.Context) error {
	for _, opened := range []*os.File{s.dir, s.copies, s.holds} {
		if err := isStillAt(opened); err != nil {
			return fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	// Only a write finds out about a file system that shut itself down.
	fd, err := unix.Openat(int(s.dir.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR):
		return nil
	}
	return fmt.Errorf("%w: write to %q: %w", ErrStore, s.dir.Name(), err)
}

// isStillAt fails when the path a directory was opened at leads elsewhere now: a
// disk was mounted over it, or somebody moved it.
func isStillAt(opened *os.File) error {
	now, err := os.Stat(opened.Name())
	if err != nil {
		return err
	}
	then, err := opened.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(now, then) {
		return fmt.Errorf("%q is no longer the directory that was opened, restart the plugin", opened.Name())
	}
	return nil
}
