package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"liken.sh/csicommon/storedir"
)

// checkOwner refuses a directory of another user: libgit2 opens no repository that does
// not belong to the process's own, and would say so at the first volume only, and less
// clearly.
func checkOwner(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if own := os.Geteuid(); known && int(stat.Uid) != own {
		return fmt.Errorf("%q belongs to user %d and the driver runs as user %d: give it to that user (chown -R %d), or run the driver as its owner",
			dir, stat.Uid, own, own)
	}
	return nil
}

// checkOwners looks at the repositories too: a backup may have been played back by
// somebody else.
func (s *Store) checkOwners() error {
	names, err := storedir.Names(s.repos)
	if err != nil {
		return err
	}
	for _, name := range append([]string{""}, names...) {
		if err := checkOwner(filepath.Join(s.repos.Name(), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
