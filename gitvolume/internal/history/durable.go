package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// temporary is the pattern of the names of files that are being written. git prune
// knows the prefix "tmp_" and removes what a crash has left.
const temporary = "tmp_history_*"

// place puts a file in place as a whole: written beside it, synced, and renamed. The
// directory is not synced.
func place(path string, content []byte, mode fs.FileMode) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return fmt.Errorf("make a temporary file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write a temporary file: %w", err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("put a file in place: %w", err)
	}
	return nil
}

// syncDir makes what was made, renamed or removed in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open a directory to sync it: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync a directory: %w", err)
	}
	return nil
}
