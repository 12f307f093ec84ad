package copies

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// longestFile bounds what is read of one of the store's own files, in bytes.
const longestFile = 64 << 10

// errNotAFile is wrapped when a link, a FIFO or the like is where one of the
// store's own files should be.
var errNotAFile = errors.New("not a regular file")

// readFile reads one of the store's own files. It follows no link and cannot be
// held up by a FIFO.
func readFile(dir *os.File, name string) ([]byte, error) {
	f, err := openFile(dir, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, longestFile+1))
	if err == nil && len(data) > longestFile {
		return nil, fmt.Errorf("%q has more than %d bytes", name, longestFile)
	}
	return data, err
}

func openFile(dir *os.File, name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("%q: %w", name, errNotAFile)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q: %w", name, errNotAFile)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// replaceFile writes a file under another name and renames it, so that a reader
// finds the old or the new one whole; ready is called in between.
func replaceFile(dir *os.File, name string, data []byte, ready func(*os.File) error) (err error) {
	unnamed := unfinished + rand.Text()
	f, err := openFile(dir, unnamed, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = unix.Unlinkat(int(dir.Fd()), unnamed, 0) // else the next start does it
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = ready(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return unix.Renameat(int(dir.Fd()), unnamed, int(dir.Fd()), name)
}

func removeFile(dir *os.File, name string) error {
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}
