// Package sweep decides which copies to remove: those whose PersistentVolume was
// deleted from the cluster.
//
// A copy may go only when a complete, live read of the cluster the store belongs
// to finds no PersistentVolume of this driver that names its handle, and while
// nothing shows it. The package must never take an error, a partial answer,
// another cluster or silence for a deletion, and a sweep that finds every copy
// named must ask the API server nothing.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/pernode/internal/copies"
)

// identifyAgain is when the API server is first asked again for its cluster; the
// time doubles with each try, up to that between two sweeps.
const identifyAgain = 10 * time.Second

// confirmTimeout bounds the live read of one sweep.
const confirmTimeout = 5 * time.Minute

// patience is how long one copy may take to be looked at or moved to the trash. A
// copy can be on a disk of its own, and one that hangs must not keep the others
// from being swept.
const patience = 30 * time.Second

// Store is what a sweep needs of the copies; *copies.Store is it.
type Store interface {
	List() ([]string, error)
	Holds() ([]string, error)
	Hold(volume string) (hold copies.Hold, readable bool)
	Holder(volume string) (hold copies.Hold, held bool, err error)
	Remove(ctx context.Context, volume string, confirm func() error) error
	Cluster() (string, error)
	SetCluster(uid string) error
}

// Cluster is what a sweep needs of the API server; *persistentvolume.View is it.
type Cluster interface {
	Follow(name string)
	Unfollow(name string)
	Get(name string) (persistentvolume.Volume, persistentvolume.State)
	Read(ctx context.Context, name string) (persistentvolume.Volume, bool, error)
	Confirm(ctx context.Context, cluster, driver string) ([]persistentvolume.Volume, error)
	Cluster(ctx context.Context) (string, error)
}

// Config is what a Sweeper needs.
type Config struct {
	Driver string // only PersistentVolumes of this driver count
	Every  time.Duration
	// AdoptStore records whatever cluster answers as the store's.
	AdoptStore bool
	Store      Store
	Cluster    Cluster
	// Removed is called after a copy was moved to the trash.
	Removed func(volume string)
	Log     *slog.Logger
}

// Sweeper sweeps on time, on a deletion and on an unpublish.
type Sweeper struct {
	config Config
	poked  chan struct{}

	mu     sync.Mutex
	names  map[string]*names // by volume handle
	wished uint64            // grows with every publish
	hung   map[string]bool   // copies whose disk has not answered yet

	removed, failures atomic.Int64
	last              atomic.Int64 // Unix time in nanoseconds, 0 before the first
}

// New makes a Sweeper that does nothing before Run.
func New(config Config) *Sweeper {
	return &Sweeper{config: config, poked: make(chan struct{}, 1), names: make(map[string]*names), hung: make(map[string]bool)}
}

// Changed says that a PersistentVolume is not as it was.
func (s *Sweeper) Changed(string) { s.poke() }

// Released says that a pod let go of the volume. Most are still named, and then
// there is nothing to do.
func (s *Sweeper) Released(volume string) {
	if unnamed, err := s.looksUnnamed(volume); unnamed && err == nil {
		s.poke()
	}
}

// poke asks for a sweep soon.
func (s *Sweeper) poke() {
	select {
	case s.poked <- struct{}{}:
	default: // one is asked for already
	}
}

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) {
	if !s.awaitCluster(ctx) {
		return
	}
	ticker := time.NewTicker(s.config.Every)
	defer ticker.Stop()
	for {
		s.sweep(ctx)
		select {
		case <-ctx.Done():
			return
		case <-s.poked:
		case <-ticker.C:
		}
	}
}

// sweep looks once at every copy.
func (s *Sweeper) sweep(ctx context.Context) {
	switch err := s.sweepAll(ctx); {
	case err == nil:
		s.last.Store(time.Now().UnixNano())
	case ctx.Err() != nil: // the plugin stops; the next start sweeps again
	default:
		s.failures.Add(1)
		s.config.Log.Error("a sweep failed, what it could not decide is kept", "error", err)
	}
}

func (s *Sweeper) sweepAll(ctx context.Context) error {
	all, err := s.config.Store.List()
	if err != nil {
		return err
	}
	// A copy that was moved aside under its pod may be put back, and has to go then
	// as any other. Without the holds only such a copy waits longer.
	held, heldErr := s.config.Store.Holds()
	s.follow(slices.Concat(all, held))
	candidates, err := s.candidates(all)
	err = errors.Join(heldErr, err)
	if len(candidates) == 0 {
		return err
	}
	return errors.Join(err, s.removeUnnamed(ctx, candidates))
}

// candidates are the copies that, as far as is known here, no PersistentVolume
// names and no pod holds.
func (s *Sweeper) candidates(all []string) ([]string, error) {
	var candidates []string
	var errs []error
	for _, volume := range all {
		unnamed, err := s.looksUnnamed(volume)
		if err != nil {
			errs = append(errs, err)
		}
		if !unnamed {
			continue
		}
		held := false
		err = s.patiently(volume, func() (err error) {
			_, held, err = s.config.Store.Holder(volume)
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("find out who holds volume %q: %w", volume, err))
		} else if !held {
			candidates = append(candidates, volume)
		}
	}
	return candidates, errors.Join(errs...)
}

// removeUnnamed removes those candidates that a complete live read does not name.
func (s *Sweeper) removeUnnamed(ctx context.Context, candidates []string) error {
	cluster, err := s.config.Store.Cluster()
	if err != nil {
		return err
	}
	before := s.wishes()
	reading, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	volumes, err := s.config.Cluster.Confirm(reading, cluster, s.config.Driver)
	if err != nil {
		return fmt.Errorf("confirm that %d volumes are gone from the cluster: %w", len(candidates), err)
	}
	named := s.learn(volumes)
	var errs []error
	for _, volume := range candidates {
		if !named[volume] {
			errs = append(errs, s.remove(ctx, volume, before))
		}
	}
	return errors.Join(errs...)
}

// remove removes one copy, unless its volume came back after the confirming read
// began: as a PersistentVolume of a known name, which is asked here once more, or
// as a publish on this node, which is asked under the volume's lock. The API
// server is never asked under that lock: a publish would wait for it. What was
// asked here is worth no more than patience: a removal that had to wait longer
// for the lock or a disk does not happen.
func (s *Sweeper) remove(ctx context.Context, volume string, before uint64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.stillUnnamed(ctx, volume)
	if err == nil {
		err = s.patiently(volume, func() error { return s.removeNow(ctx, volume, before) })
	}
	switch {
	case errors.Is(err, copies.ErrHeld), errors.Is(err, errWantedAgain):
		s.config.Log.Info("keeping a copy", "volume", volume, "error", err)
		return nil
	case err != nil:
		s.postpone(volume)
		return fmt.Errorf("remove the copy of volume %q: %w", volume, err)
	}
	return nil
}

// removeNow also does the accounts, since nobody may be waiting any more.
func (s *Sweeper) removeNow(ctx context.Context, volume string, before uint64) error {
	err := s.config.Store.Remove(ctx, volume, func() error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("it took too long since the cluster was asked: %w", err)
		}
		if err := s.notWanted(volume, before); err != nil {
			return err
		}
		s.config.Log.Info("removing a copy, its PersistentVolume is gone", "volume", volume)
		return nil
	})
	if err != nil {
		return err
	}
	s.removed.Add(1)
	if s.forget(volume, before) {
		s.config.Removed(volume)
	}
	return nil
}

// errHung is returned for a copy whose disk does not answer.
var errHung = errors.New("the disk of the copy does not answer")

// patiently does something with one copy's disk, and goes on without it when that
// hangs. While it hangs it is not tried again.
func (s *Sweeper) patiently(volume string, do func() error) error {
	s.mu.Lock()
	hung := s.hung[volume]
	s.mu.Unlock()
	if hung {
		return errHung
	}
	done := make(chan error, 1)
	go func() {
		done <- do()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.hung, volume)
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(done) == 0 {
		s.hung[volume] = true
	}
	return errHung
}

// Figures are the sweeper's own, for its metrics.
type Figures struct {
	Removed, Failures int64
	Last              time.Time // of the last sweep without a failure, zero before it
}

// Figures returns the counts since the start.
func (s *Sweeper) Figures() Figures {
	f := Figures{Removed: s.removed.Load(), Failures: s.failures.Load()}
	if at := s.last.Load(); at != 0 {
		f.Last = time.Unix(0, at)
	}
	return f
}
