package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"liken.sh/csicommon/errortext"
)

// temporary is the pattern of the names of files that are being written. git prune
// knows the prefix "tmp_" and removes what a crash has left.
const temporary = "tmp_history_*"

// place puts a file in place as a whole: written beside it, synced, and renamed. The
// directory is not synced.
func place(path string, content []byte, mode fs.FileMode) error {
	written, err := write(filepath.Dir(path), content, mode)
	if err != nil {
		return err
	}
	if err := written.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync a temporary file: %w", errortext.WithoutPath(err)), discard(written))
	}
	return rename(written, path)
}

// write makes a temporary file in the directory, which is not synced yet.
func write(dir string, content []byte, mode fs.FileMode) (*os.File, error) {
	file, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", errortext.WithoutPath(err))
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write a temporary file: %w", errortext.WithoutPath(err)), discard(file))
	}
	return file, nil
}

// rename closes a temporary file and puts it in place.
func rename(file *os.File, path string) error {
	if err := os.Rename(file.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("put a file in place: %w", errortext.WithoutPath(err)), discard(file))
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("close what was put in place: %w", errortext.WithoutPath(err))
	}
	return nil
}

// discard closes and removes a temporary file.
func discard(file *os.File) error {
	return errors.Join(errortext.WithoutPath(file.Close()), errortext.WithoutPath(os.Remove(file.Name())))
}

// nameless is a temporary file whose errors do not tell its name, which is another one
// each time: they become the texts of Events, which are counted up where they repeat.
type nameless struct{ file *os.File }

// Write implements io.Writer.
func (n nameless) Write(b []byte) (int, error) {
	written, err := n.file.Write(b)
	return written, errortext.WithoutPath(err)
}

// listSuffix are the paths of a directory's entries with that suffix. The directory's own
// path may hold anything, also what a pattern would give a meaning to.
func listSuffix(dir, suffix string) ([]string, error) {
	listed, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list a directory: %w", err)
	}
	var paths []string
	for _, entry := range listed {
		if strings.HasSuffix(entry.Name(), suffix) {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths, nil
}
