// Package store is the driver's directory on a node: where the repositories, the trees
// and what is known of each volume lie, who may work on a repository at a time, and what
// of all this is no longer needed.
//
// It must never lose what a volume's record says, never take a directory for a tree that
// is not the one its record names, never remove what a record, or a tree without one,
// still needs, and never follow a link. What is in a tree or in a repository is not its
// concern.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/storedir"
	"liken.sh/csicommon/trash"
)

// The names below a store.
const (
	reposDir     = "repos"
	volumesDir   = "volumes"
	checkoutsDir = "checkouts"
	asideDir     = "aside"
	trashDir     = "trash"
	keptDir      = "kept" // In the trash: volumes with a tree.
	nowDir       = "now"  // In the trash: what nobody wants back.
	sshDir       = "ssh"
	// ScratchDir is the mount package's, and made only by it.
	ScratchDir = "scratch"
)

// format is the layout this code reads and writes.
const format = 1

var (
	// ErrStore is wrapped by every reason why a directory cannot be the store.
	ErrStore = errors.New("store cannot be used")
	// ErrClusterLost is wrapped when a store does not tell its cluster any more.
	ErrClusterLost = storedir.ErrClusterLost
)

// Step names one change to the disk that the store is about to make.
type Step string

// Settings are what a store needs. Check and BeforeStep alone may be nil.
type Settings struct {
	Dir     string // The store's directory, made if missing.
	MinFree Free   // What has to be free for new volumes.
	// TrashKeep is how long a removed volume's tree stays in the trash.
	TrashKeep time.Duration
	// Check refuses a directory for the caller's reasons, before anything in it is
	// changed; nil: there are none.
	Check func(dir string) error
	Log   *slog.Logger
	// BeforeStep is called before each Step, so that a test can end the process at
	// every one of them.
	BeforeStep func(Step)
}

// Store is a node's store, open and locked for this process. It may be used by many
// goroutines; what is said of one volume, one goroutine says at a time.
type Store struct {
	settings  Settings
	dir       *storedir.Store
	volumes   *os.File
	repos     *os.File
	kept, now *trash.Bin
	guards    guards
	making    keyedmutex.Mutex // Who makes a repository, by its name.
	suspects  suspects
	wake      chan struct{}
}

// Open makes or opens the store and locks it against a second process. What an earlier
// process left unfinished is gone then; repositories are Recover's. Errors wrap ErrStore
// and say what would be right.
func Open(settings Settings) (*Store, error) {
	s := &Store{settings: settings, wake: make(chan struct{}, 1)}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %q: %w: %w", settings.Dir, ErrStore, err), s.Close())
	}
	return s, nil
}

func (s *Store) open() error {
	var err error
	s.dir, err = storedir.Open(storedir.Layout{
		Dir: s.settings.Dir, Format: format,
		Parts:   []string{reposDir, volumesDir, checkoutsDir, asideDir, trashDir, sshDir},
		Foreign: []string{ScratchDir}, Check: s.check,
	})
	if err != nil {
		return err
	}
	s.volumes, s.repos = s.dir.Part(volumesDir), s.dir.Part(reposDir)
	if err := s.checkOwners(); err != nil {
		return err
	}
	if s.now, err = s.openBin(nowDir, 0); err != nil {
		return err
	}
	if s.kept, err = s.openBin(keptDir, s.settings.TrashKeep); err != nil {
		return err
	}
	if err := s.clean(); err != nil {
		return err
	}
	return s.readSuspects()
}

func (s *Store) check(dir string) error {
	if err := checkOwner(dir); err != nil || s.settings.Check == nil {
		return err
	}
	return s.settings.Check(dir)
}

func (s *Store) openBin(name string, keep time.Duration) (*trash.Bin, error) {
	parent := s.dir.Part(trashDir)
	if err := unix.Mkdirat(int(parent.Fd()), name, storedir.Mode); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make %q in the trash: %w", name, err)
	}
	dir, err := storedir.OpenDir(parent, name)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // The bin has its own.
	return trash.Open(trash.Config{Dir: dir, Log: s.settings.Log, Keep: keep})
}

// Close gives the store up to another process.
func (s *Store) Close() error {
	if s.dir == nil {
		return nil
	}
	return s.dir.Close()
}

// Dir is the store's path, without links.
func (s *Store) Dir() string { return s.dir.Path() }

// Root is the store's directory, open; it stays the store's.
func (s *Store) Root() *os.File { return s.dir.Dir() }

// SSHDir is the directory for known host keys.
func (s *Store) SSHDir() string { return s.path(sshDir) }

// Cluster is the UID recorded for the cluster this store belongs to, empty when none was
// yet. The error wraps ErrClusterLost when there is no record.
func (s *Store) Cluster() (string, error) { return s.dir.Cluster() }

// SetCluster records the cluster, durably: it is what keeps another cluster from
// removing everything.
func (s *Store) SetCluster(uid string) error { return s.dir.SetCluster(uid) }

// Usable returns nil while the volumes that exist can be served. A full or read-only
// disk is usable. The error wraps ErrStore.
func (s *Store) Usable(ctx context.Context) error {
	return ofStore(s.dir.Usable(ctx, volumesDir, reposDir))
}

// Writable returns nil when new volumes can be made too. The error wraps ErrStore.
func (s *Store) Writable(ctx context.Context) error { return ofStore(s.dir.Writable(ctx)) }

// EmptyTrash deletes what was removed in the background until ctx ends, also what an
// earlier process removed.
func (s *Store) EmptyTrash(ctx context.Context) {
	kept := make(chan struct{})
	go func() { defer close(kept); s.kept.Run(ctx) }()
	s.now.Run(ctx)
	<-kept
}

func (s *Store) path(names ...string) string {
	return filepath.Join(append([]string{s.dir.Path()}, names...)...)
}

func (s *Store) step(step Step) {
	if s.settings.BeforeStep != nil {
		s.settings.BeforeStep(step)
	}
}

func ofStore(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}
