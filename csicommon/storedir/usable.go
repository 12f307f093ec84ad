package storedir

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Usable returns nil while the store and these parts of it are where they were opened,
// so that what is in them can be served. A full or read-only disk is usable: a plugin
// that was ended for it could not even take pods off it. The parts are the same in each
// call.
func (s *Store) Usable(ctx context.Context, parts ...string) error {
	return s.ask(ctx, "usable", func() error { return s.usable(parts) })
}

// Writable returns nil when something new can be made too.
func (s *Store) Writable(ctx context.Context) error { return s.ask(ctx, "writable", s.writable) }

// ask waits for an answer of the disk until ctx ends. All who ask the same
// meanwhile wait for one answer: a disk that hangs costs one thread.
func (s *Store) ask(ctx context.Context, what string, check func() error) error {
	answer := s.questions.DoChan(what, func() (any, error) { return nil, check() })
	select {
	case result := <-answer:
		return result.Err
	case <-ctx.Done():
		return fmt.Errorf("its disk does not answer: %w", ctx.Err())
	}
}

func (s *Store) usable(parts []string) error {
	if err := StillAt(s.dir); err != nil {
		return err
	}
	for _, name := range parts {
		if err := StillAt(s.parts[name]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) writable() error {
	// Only a write finds out about a file system that shut itself down.
	fd, err := unix.Openat(int(s.dir.Fd()), ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR):
		return nil // full, or a file system without such files
	}
	return fmt.Errorf("write to %q: %w", s.dir.Name(), err)
}

// StillAt fails when the path a directory was opened at leads elsewhere now: a disk was
// mounted over it, or somebody moved it.
func StillAt(opened *os.File) error {
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
