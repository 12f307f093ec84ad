// Package copies owns a node's store: the copy of each volume, the hold that
// says which pod has it, and the trash. It makes a copy, shows it on a target,
// takes it away again and removes it, and decides from the mount table who holds
// what.
//
// It must never remove anything through a target path, never let a symlink stand
// for a copy, never remove a copy that a target shows, and never know CSI or
// Kubernetes: its errors are its own.
package copies

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/trash"
)

// The names below a store.
const (
	copiesDir = "copies"
	holdsDir  = "holds"
	trashDir  = "trash"
	// ScratchDir is for the mount package's fall-back, and made only by it.
	ScratchDir = "scratch"
	// lostFoundDir is on a disk that was just made.
	lostFoundDir = "lost+found"
)

// storeMode keeps everyone but root out: copies have mode 0777, and nobody else
// on the node may walk in to them.
const storeMode = 0o700

// ErrStore is wrapped by every reason why a directory cannot be the store.
var ErrStore = errors.New("store cannot be used")

// Mounts is what the store needs of the node's mounts; *mount.System is it.
type Mounts interface {
	Bind(source *os.File, target string, options mount.Options) error
	Unbind(target string) error
	IsMount(path string) (bool, error)
	At(point string) (m mount.Mount, mounted bool, err error)
	Showing(location mount.Location) ([]mount.Mount, error)
	Shows(point string, dir *os.File, name string) (mount.Mount, bool)
	Locate(dir *os.File) (mount.Location, error)
	RequireShared(dir string) error
	Rescan() error
}

// Step names one change to the disk or the mount table that publishing,
// unpublishing or removing is about to make.
type Step string

// Config is what a store needs. BeforeStep alone may be nil.
type Config struct {
	Dir        string // the store's directory, made if missing
	KubeletDir string // canonical; targets below it are the kubelet's
	// RequireMount refuses a directory that is no mount point, so that a disk
	// that failed to mount does not look like an empty store.
	RequireMount bool
	Mounts       Mounts
	Log          *slog.Logger
	// BeforeStep is called before each Step, so that a test can end the process
	// at every one of them.
	BeforeStep func(Step)
}

// Store is a node's store, open and locked for this process.
type Store struct {
	config  Config
	dir     *os.File
	copies  *os.File
	holds   *os.File
	trash   *os.File
	bin     *trash.Bin
	unlock  *os.File // holds the lock until closed
	handles keyedmutex.Mutex
	targets keyedmutex.Mutex
	// questions are those of health checks, which a hung disk must not pile up.
	questions singleflight.Group

	mu     sync.Mutex
	stamps map[string]stamp // of the holds known to be right, by volume
}

// Open makes or opens the store and locks it against a second process. Errors
// wrap ErrStore and say what would be right.
func Open(config Config) (*Store, error) {
	s := &Store{config: config, stamps: make(map[string]stamp)}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %q: %w", config.Dir, err), s.Close())
	}
	return s, nil
}

func (s *Store) open() error {
	if err := s.openDir(); err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	for _, step := range []func() error{s.checkMount, s.checkForeign, s.lock, s.checkFormat, s.openParts, s.clean} {
		if err := step(); err != nil {
			return fmt.Errorf("%w: %w", ErrStore, err)
		}
	}
	return nil
}

func (s *Store) openDir() error {
	if !filepath.IsAbs(s.config.Dir) {
		return errors.New("its path is not absolute")
	}
	if err := os.MkdirAll(s.config.Dir, storeMode); err != nil {
		return fmt.Errorf("make it: %w", err)
	}
	// The node's administrator may have put a link here; what it leads to now is
	// the store for the life of the process.
	dir, err := filepath.EvalSymlinks(s.config.Dir)
	if err != nil {
		return err
	}
	s.config.Dir = dir
	s.dir, err = os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	return err
}

func (s *Store) checkMount() error {
	if !s.config.RequireMount {
		return nil
	}
	mounted, err := s.config.Mounts.IsMount(s.config.Dir)
	if err != nil {
		return fmt.Errorf("ask whether it is a mount point: %w", err)
	}
	if !mounted {
		return errors.New("it is not a mount point and --require-mount is set: mount its disk there, or drop the flag")
	}
	return nil
}

// openParts opens what is below the store, never through a link: what is in the
// trash is deleted, and what copies holds is one day.
func (s *Store) openParts() error {
	if err := s.restrict(); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		into **os.File
	}{{copiesDir, &s.copies}, {holdsDir, &s.holds}, {trashDir, &s.trash}} {
		if err := unix.Mkdirat(int(s.dir.Fd()), part.name, storeMode); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("make %q: %w", part.name, err)
		}
		var err error
		if *part.into, err = openDirAt(s.dir, part.name); err != nil {
			return err
		}
	}
	// Who holds a copy is found in the mount table by where the copy lies; where
	// that cannot be told (NFS), every publish would have to be refused.
	if _, err := s.config.Mounts.Locate(s.copies); err != nil {
		return fmt.Errorf("find it in the mount table: %w", err)
	}
	var err error
	s.bin, err = trash.Open(trash.Config{Dir: s.trash, Log: s.config.Log})
	return err
}

func (s *Store) restrict() error {
	info, err := s.dir.Stat()
	if err != nil {
		return err
	}
	if info.Mode().Perm() == storeMode {
		return nil // a store that went read-only must still be opened
	}
	if err := s.dir.Chmod(storeMode); err != nil {
		return fmt.Errorf("restrict it to root: %w", err)
	}
	return nil
}

// clean removes what an earlier process left unfinished. On a store that went
// read-only it stays, so that pods can still be taken off it.
func (s *Store) clean() error {
	for _, dir := range []*os.File{s.dir, s.copies, s.holds} {
		names, err := namesIn(dir)
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasPrefix(name, unfinished) {
				s.removeUnfinished(dir, name)
			}
		}
	}
	return s.cleanHolds()
}

func (s *Store) removeUnfinished(dir *os.File, name string) {
	err := unix.Unlinkat(int(dir.Fd()), name, 0)
	if errors.Is(err, unix.EISDIR) {
		err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	}
	if err != nil {
		s.config.Log.Warn("something unfinished stays in the store", "path", filepath.Join(dir.Name(), name), "error", err)
	}
}

func namesIn(dir *os.File) ([]string, error) {
	again, err := openDirAt(dir, ".")
	if err != nil {
		return nil, err
	}
	defer again.Close()
	return again.Readdirnames(-1)
}

// Close gives the store up to another process.
func (s *Store) Close() error {
	var errs []error
	for _, f := range []*os.File{s.trash, s.holds, s.copies, s.dir, s.unlock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// EmptyTrash deletes removed copies in the background until ctx ends, those of
// an earlier process too.
func (s *Store) EmptyTrash(ctx context.Context) { s.bin.Run(ctx) }

func (s *Store) step(step Step) {
	if s.config.BeforeStep != nil {
		s.config.BeforeStep(step)
	}
}
