package storedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"liken.sh/csicommon/durable"
)

// lostFoundDir is on a disk that was just made.
const lostFoundDir = "lost+found"

// checkForeign refuses to make a store of a directory that is full of something
// else: its mode would change, and one day things would be removed from it. It
// comes before anything is written.
func (s *Store) checkForeign() error {
	if _, err := ReadFile(s.dir, formatFile, longestFile); !errors.Is(err, fs.ErrNotExist) {
		return nil // checkFormat judges it
	}
	entries, err := os.ReadDir(s.layout.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == lockFile, name == clusterFile, name == lostFoundDir, s.isUnfinished(entry):
		case slices.Contains(s.layout.Parts, name), slices.Contains(s.layout.Foreign, name):
			if err := s.checkEmptyPart(name); err != nil {
				return err
			}
		default:
			return fmt.Errorf("it holds %q and no store's format: choose an empty directory", name)
		}
	}
	return nil
}

func (s *Store) isUnfinished(entry fs.DirEntry) bool {
	name := entry.Name()
	own := entry.Type().IsRegular() && (name == formatFile+durable.Suffix || name == clusterFile+durable.Suffix)
	return own || s.layout.Unfinished != nil && s.layout.Unfinished(name)
}

func (s *Store) checkEmptyPart(name string) error {
	dir, err := OpenDir(s.dir, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(1)
	if len(names) > 0 {
		return fmt.Errorf("%q in it holds %q, but it has no store's format: choose an empty directory", name, names[0])
	}
	_ = err // io.EOF of an empty directory
	return nil
}

// Sweep removes from a directory of the store what unfinished names, which a killed
// process left; an error is of one that stays. It does not look into directories.
func Sweep(dir *os.File, unfinished func(name string) bool) error {
	names, err := Names(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if unfinished(name) {
			errs = append(errs, removeAny(dir, name))
		}
	}
	return errors.Join(errs...)
}

// IsNext tells what durable.Replace leaves when it is killed.
func IsNext(name string) bool { return strings.HasSuffix(name, durable.Suffix) }
