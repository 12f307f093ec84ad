// Package storedir is the directory in which a driver keeps its state on a node: it
// makes or opens it, locks it against a second process, and knows its format and its
// cluster.
//
// It must never take a directory that is full of something else for a store, never
// follow a link below the store, and never open one that a later release wrote.
package storedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"
)

// Mode keeps everyone but the process's own user out of a store: what it holds may be
// open to every user, who must not walk in to it.
const Mode = 0o700

// ErrInUse says that another process has the store open.
var ErrInUse = errors.New("another process is using it, stop that one first")

// Layout says what a driver's store looks like.
type Layout struct {
	// Dir is the store's path, absolute; it is made if it is missing.
	Dir string
	// Format is the number of the layout that this release writes, from 1 on.
	Format int
	// Parts are the directories below the store. They are made if they are missing.
	Parts []string
	// Foreign are other directories that may be below it, which somebody else makes.
	Foreign []string
	// Unfinished tells by its name what a killed process has left, besides what this
	// package leaves itself; nil if there is nothing else.
	Unfinished func(name string) bool
	// Check, if not nil, is asked about the store's path, without links, before anything
	// in it is written or changed.
	Check func(dir string) error
}

// Store is a store's directory, open and locked for this process.
type Store struct {
	layout Layout
	dir    *os.File
	parts  map[string]*os.File
	lock   *os.File // Holds the lock until it is closed.
	// questions are those about the disk, which must not pile up while it hangs.
	questions singleflight.Group
}

// Open makes or opens the store and locks it against a second process. An error says
// what would be right.
func Open(layout Layout) (*Store, error) {
	s := &Store{layout: layout, parts: make(map[string]*os.File)}
	for _, step := range []func() error{s.openDir, s.check, s.checkForeign, s.takeLock, s.checkFormat, s.restrict, s.openParts} {
		if err := step(); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Store) openDir() error {
	if !filepath.IsAbs(s.layout.Dir) {
		return errors.New("its path is not absolute")
	}
	if err := os.MkdirAll(s.layout.Dir, Mode); err != nil {
		return fmt.Errorf("make it: %w", err)
	}
	// The node's administrator may have put a link here; what it leads to now is
	// the store for the life of the process.
	dir, err := filepath.EvalSymlinks(s.layout.Dir)
	if err != nil {
		return err
	}
	s.layout.Dir = dir
	s.dir, err = os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	return err
}

func (s *Store) check() error {
	if s.layout.Check == nil {
		return nil
	}
	return s.layout.Check(s.layout.Dir)
}

// takeLock keeps a second process off the store: two would each believe their own
// table of locks. The kernel drops it when the process ends, however it ends.
func (s *Store) takeLock() error {
	// Not for writing: that would keep the administrator from making the disk
	// read-only, and a store on one that is from being opened.
	f, err := OpenFile(s.dir, lockFile, unix.O_RDONLY|unix.O_CREAT)
	if err != nil {
		return fmt.Errorf("open its lock: %w", err)
	}
	s.lock = f
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return ErrInUse
		}
		return fmt.Errorf("lock it: %w", err)
	}
	return nil
}

func (s *Store) restrict() error {
	info, err := s.dir.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm() == Mode {
		return nil // A store that went read-only must still be opened.
	}
	if err := s.dir.Chmod(Mode); err != nil {
		return fmt.Errorf("restrict it to its owner: %w", err)
	}
	return nil
}

// openParts opens what is below the store, never through a link: some of it is deleted
// one day.
func (s *Store) openParts() error {
	for _, name := range s.layout.Parts {
		if err := unix.Mkdirat(int(s.dir.Fd()), name, Mode); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("make %q: %w", name, err)
		}
		part, err := OpenDir(s.dir, name)
		if err != nil {
			return err
		}
		s.parts[name] = part
	}
	return nil
}

// Path is the store's path, without links.
func (s *Store) Path() string { return s.layout.Dir }

// Dir is the store's directory, which stays the Store's.
func (s *Store) Dir() *os.File { return s.dir }

// Part is one of the layout's parts, by its name. It stays the Store's.
func (s *Store) Part(name string) *os.File { return s.parts[name] }

// Close gives the store up to another process.
func (s *Store) Close() error {
	var errs []error
	for _, part := range s.parts {
		errs = append(errs, part.Close())
	}
	for _, f := range []*os.File{s.dir, s.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
