// Package durable replaces a file as a whole: whatever ends the process or the power,
// the file holds what it held before or all of what was written.
//
// It must never leave a file half-written under its own name, and never report success
// before the disk has the content and the name.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"liken.sh/csicommon/errortext"
)

// Suffix is what the name of a file ends in while it is written beside the one it is to
// replace. One that a crash left is replaced by the next Replace of that file.
const Suffix = ".next"

// Replace makes the file at path hold the content, with that mode whatever the umask.
// One path has one writer at a time. After an error the file is as it was, unless only
// the sync of its directory failed. Errors do not name the file, which is the caller's
// to do.
func Replace(path string, content []byte, mode fs.FileMode) error {
	next := path + Suffix
	if err := write(next, content, mode); err != nil {
		return errors.Join(err, discard(next))
	}
	if err := os.Rename(next, path); err != nil {
		return errors.Join(fmt.Errorf("put a file in place: %w", errortext.WithoutPath(err)), discard(next))
	}
	return SyncDir(filepath.Dir(path))
}

// Remove removes the file at path, if it is there, for good.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove a file: %w", errortext.WithoutPath(err))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes durable what was made, renamed or removed in a directory.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open a directory to sync it: %w", errortext.WithoutPath(err))
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync a directory: %w", errortext.WithoutPath(err))
	}
	return nil
}

func write(path string, content []byte, mode fs.FileMode) error {
	// What is there is not written to: it may be a link, or a FIFO, that somebody left.
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := os.OpenFile(path, flags, mode)
	if errors.Is(err, fs.ErrExist) {
		if err = os.Remove(path); err == nil {
			file, err = os.OpenFile(path, flags, mode)
		}
	}
	if err != nil {
		return fmt.Errorf("make a file: %w", errortext.WithoutPath(err))
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write a file: %w", errortext.WithoutPath(err))
	}
	return nil
}

// discard removes what could not be put in place; on a full disk it may be what fills it.
func discard(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errortext.WithoutPath(err)
	}
	return nil
}
