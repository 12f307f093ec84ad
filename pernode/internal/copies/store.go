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
	"strings"
	"sync"

	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/storedir"
	"liken.sh/csicommon/target"
	"liken.sh/csicommon/trash"
	"liken.sh/csicommon/usage"
)

// The names below a store.
const (
	copiesDir = "copies"
	holdsDir  = "holds"
	trashDir  = "trash"
	// ScratchDir is for the mount package's fall-back, and made only by it.
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
	dir     *storedir.Store
	copies  *os.File
	holds   *os.File
	bin     *trash.Bin
	handles keyedmutex.Mutex
	places  keyedmutex.Mutex // Targets that a call is at work on.
	targets *target.Targets
	// questions are those about a copy's disk that a call asks without its volume's lock.
	questions usage.Questions

	mu     sync.Mutex
	stamps map[string]stamp // of the holds known to be right, by volume
}

// Open makes or opens the store and locks it against a second process. Errors
// wrap ErrStore and say what would be right.
func Open(config Config) (*Store, error) {
	s := &Store{config: config, stamps: make(map[string]stamp)}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %q: %w: %w", config.Dir, ErrStore, err), s.Close())
	}
	return s, nil
}

func (s *Store) open() error {
	var err error
	s.dir, err = storedir.Open(storedir.Layout{
		Dir: s.config.Dir, Format: format, Parts: []string{copiesDir, holdsDir, trashDir},
		Foreign: []string{ScratchDir}, Unfinished: isUnfinished, Check: s.checkMount,
	})
	if err != nil {
		return err
	}
	s.config.Dir, s.copies, s.holds = s.dir.Path(), s.dir.Part(copiesDir), s.dir.Part(holdsDir)
	// Who holds a copy is found in the mount table by where the copy lies; where
	// that cannot be told (NFS), every publish would have to be refused.
	if _, err := s.config.Mounts.Locate(s.copies); err != nil {
		return fmt.Errorf("find it in the mount table: %w", err)
	}
	s.targets = target.New(target.Config{
		KubeletDir: s.config.KubeletDir, StoreDir: s.config.Dir, Shown: s.copies,
		Mounts: s.config.Mounts, Log: s.config.Log, BeforeStep: func(step target.Step) { s.step(Step(step)) },
	})
	s.bin, err = trash.Open(trash.Config{Dir: s.dir.Part(trashDir), Log: s.config.Log})
	if err != nil {
		return err
	}
	return s.clean()
}

func (s *Store) checkMount(dir string) error {
	if !s.config.RequireMount {
		return nil
	}
	return storedir.RequireMount(s.config.Mounts)(dir)
}

// clean removes what an earlier process left unfinished. On a store that went
// read-only it stays, so that pods can still be taken off it.
func (s *Store) clean() error {
	for _, dir := range []*os.File{s.dir.Dir(), s.copies, s.holds} {
		if err := storedir.Sweep(dir, isUnfinished); err != nil {
			s.config.Log.Warn("something unfinished stays in the store", "path", dir.Name(), "error", err)
		}
	}
	return s.cleanHolds()
}

func isUnfinished(name string) bool { return strings.HasPrefix(name, unfinished) }

// Close gives the store up to another process.
func (s *Store) Close() error {
	if s.dir == nil {
		return nil
	}
	return s.dir.Close()
}

// Cluster returns the UID recorded for the cluster this store belongs to, empty
// when none was yet. The error wraps ErrClusterLost when there is no record.
func (s *Store) Cluster() (string, error) { return s.dir.Cluster() }

// SetCluster records the cluster, durably: it is what keeps another cluster from
// removing everything.
func (s *Store) SetCluster(uid string) error { return s.dir.SetCluster(uid) }

// EmptyTrash deletes removed copies in the background until ctx ends, those of
// an earlier process too.
func (s *Store) EmptyTrash(ctx context.Context) { s.bin.Run(ctx) }

func (s *Store) step(step Step) {
	if s.config.BeforeStep != nil {
		s.config.BeforeStep(step)
	}
}
