package store

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
)

// clean removes what an earlier process left unfinished. What cannot be removed, as on a
// disk that went read-only, stays and is in the log: pods can still be taken off.
func (s *Store) clean() error {
	if err := storedir.Sweep(s.dir.Dir(), storedir.IsNext); err != nil {
		s.stays(s.dir.Path(), err)
	}
	volumes, err := storedir.Names(s.volumes)
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if handle.Check(volume) == nil {
			s.cleanVolume(volume)
		}
	}
	repositories, err := storedir.Names(s.repos)
	if err != nil {
		return err
	}
	for _, name := range repositories {
		s.sweepIn(s.repos, name)
	}
	return s.cleanAside()
}

// cleanVolume takes away a volume of which nothing but its directory was made yet.
func (s *Store) cleanVolume(volume string) {
	s.sweepIn(s.volumes, volume)
	dir, err := storedir.OpenDir(s.volumes, volume)
	if err != nil {
		return // A link or a file is no volume, and All tells of it.
	}
	defer dir.Close()
	names, err := storedir.Names(dir)
	if err != nil || slices.Contains(names, recordFile) || slices.Contains(names, treeName) {
		return
	}
	if err := s.now.Put(s.volumes, volume); err != nil {
		s.stays(s.path(volumesDir, volume), err)
	}
}

func (s *Store) sweepIn(parent *os.File, name string) {
	dir, err := storedir.OpenDir(parent, name)
	if err != nil {
		return // It is none of the store's, and whoever uses it is told.
	}
	defer dir.Close()
	if err := storedir.Sweep(dir, storedir.IsNext); err != nil {
		s.stays(dir.Name(), err)
	}
}

// cleanAside removes the wrappers into which nothing came.
func (s *Store) cleanAside() error {
	aside := s.dir.Part(asideDir)
	wrappers, err := storedir.Names(aside)
	if err != nil {
		return err
	}
	for _, name := range wrappers {
		s.sweepIn(aside, name)
		wrapper, err := storedir.OpenDir(aside, name)
		if err != nil {
			continue // Somebody else's.
		}
		names, err := storedir.Names(wrapper)
		if err == nil && (len(names) == 0 || len(names) == 1 && names[0] == aboutFile) {
			err = errors.Join(unlink(wrapper, aboutFile), unix.Unlinkat(int(aside.Fd()), name, unix.AT_REMOVEDIR))
		}
		if err = errors.Join(err, wrapper.Close()); err != nil {
			s.stays(wrapper.Name(), err)
		}
	}
	return nil
}

func (s *Store) stays(path string, err error) {
	s.settings.Log.Warn("something unfinished stays in the store", "path", path, "error", err)
}

// unlink removes a file, if it is there.
func unlink(dir *os.File, name string) error {
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "remove", Path: name, Err: err}
	}
	return nil
}
