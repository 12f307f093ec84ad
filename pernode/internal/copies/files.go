package copies

import (
	"crypto/rand"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/storedir"
)

// longestFile bounds what is read of one of the store's own files, in bytes.
const longestFile = 64 << 10

// replaceFile writes a file under another name and renames it, so that a reader
// finds the old or the new one whole; ready is called in between.
func replaceFile(dir *os.File, name string, data []byte, ready func(*os.File) error) (err error) {
	unnamed := unfinished + rand.Text()
	f, err := storedir.OpenFile(dir, unnamed, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
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
