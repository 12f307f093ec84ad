package storedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// longestFile bounds what is read of the files that describe a store, in bytes.
const longestFile = 4 << 10

var (
	// ErrNotADirectory is wrapped when a link or a file is where a directory should be.
	ErrNotADirectory = errors.New("not a directory")
	// ErrNotAFile is wrapped when a link, a FIFO or the like is where a file should be.
	ErrNotAFile = errors.New("not a regular file")
	// ErrTooLong is wrapped when a file has more bytes than it can have.
	ErrTooLong = errors.New("too long")
)

// OpenDir opens a directory that is really one: a link is not followed. The name is one
// component.
func OpenDir(parent *os.File, name string) (*os.File, error) {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		return nil, fmt.Errorf("%q in the store is a link or a file: %w", name, ErrNotADirectory)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(parent.Name(), name)), nil
}

// OpenFile opens one of the store's files, or makes it with mode 0600. It follows no
// link and cannot be held up by a FIFO. The name is one component.
func OpenFile(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("%q: %w", name, ErrNotAFile)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q: %w", name, ErrNotAFile)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadFile reads one of the store's files. One with more bytes than longest is an error:
// what somebody else put there must not fill the memory.
func ReadFile(dir *os.File, name string, longest int64) ([]byte, error) {
	f, err := OpenFile(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err == nil && int64(len(data)) > longest {
		return nil, fmt.Errorf("%q has more than %d bytes: %w", name, longest, ErrTooLong)
	}
	return data, err
}

// Names are those of a directory's entries, in no order.
func Names(dir *os.File) ([]string, error) {
	again, err := OpenDir(dir, ".") // With a reading position of its own.
	if err != nil {
		return nil, err
	}
	defer again.Close()
	return again.Readdirnames(-1)
}

// removeAny removes a file or an empty directory.
func removeAny(dir *os.File, name string) error {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return &fs.PathError{Op: "remove", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	return nil
}
