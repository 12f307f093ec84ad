package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/history"
)

const (
	// tidyEvery is how often the store is tidied when nobody asks for it.
	tidyEvery = time.Hour
	// tidyPause is the least time between two rounds, so that many removals cost a few.
	tidyPause = 10 * time.Second
)

// GC has git collect the garbage of the bare repository at dir, which others may use
// meanwhile; (*remote.Command).GC does.
type GC func(ctx context.Context, dir string) error

// KeepTidy tidies the store every hour, and soon after AskTidy, until ctx ends. It comes
// after Recover.
func (s *Store) KeepTidy(ctx context.Context, gc GC) {
	for {
		if err := s.Tidy(ctx, gc); err != nil && ctx.Err() == nil {
			s.settings.Log.Warn("not all of the store could be tidied, trying again later", "error", err)
		}
		if !pause(ctx, tidyPause, nil) || !pause(ctx, tidyEvery-tidyPause, s.wake) {
			return
		}
	}
}

// pause waits for a time, or until it is woken; false when ctx ended.
func pause(ctx context.Context, length time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
	}
	return true
}

// AskTidy has KeepTidy work soon.
func (s *Store) AskTidy() {
	select {
	case s.wake <- struct{}{}:
	default: // It is about to.
	}
}

// Tidy deletes the refs of the driver's own that no volume follows, removes the
// repositories that no volume and no tree names, and has git collect the garbage of those
// that were written since. A repository that somebody uses waits for the next time; its
// garbage is collected meanwhile. The error is of what could not be done, whatever else
// was.
func (s *Store) Tidy(ctx context.Context, gc GC) error {
	names, err := s.repositoryNames()
	if err != nil {
		return fmt.Errorf("tidy the store: %w", err)
	}
	seen, err := s.followed()
	if err != nil {
		return fmt.Errorf("tidy the store: %w", err)
	}
	var errs []error
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		if err := s.tidy(ctx, name, seen, gc); err != nil {
			errs = append(errs, fmt.Errorf("tidy repository %s: %w", name, err))
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// tidy looks first without keeping anybody from the repository, as there mostly is nothing
// to do.
func (s *Store) tidy(ctx context.Context, name string, seen followed, gc GC) error {
	unneeded, err := s.unneeded(name, seen)
	if err != nil {
		return err
	}
	if unneeded.any() {
		removed, err := s.clear(name)
		if removed || err != nil {
			return err
		}
	}
	return s.collect(ctx, name, gc)
}

// unneeded is what nobody needs of a repository: the whole, or some refs.
type unneeded struct {
	whole bool
	refs  []history.NamedRef
}

func (u unneeded) any() bool { return u.whole || len(u.refs) > 0 }

func (s *Store) unneeded(name string, f followed) (unneeded, error) {
	_, named := f.refs[name]
	refs, err := s.ownRefs(name)
	if err != nil {
		if !named && len(f.unknown) == 0 {
			return unneeded{whole: true}, nil // Nothing could be in it that somebody needs.
		}
		return unneeded{}, err
	}
	found := unneeded{whole: !named}
	for _, ref := range refs {
		if f.needs(name, ref.Name) {
			found.whole = false
		} else {
			found.refs = append(found.refs, ref)
		}
	}
	return found, nil
}

func (s *Store) ownRefs(name string) ([]history.NamedRef, error) {
	repository, err := history.Open(s.path(reposDir, name))
	if err != nil {
		return nil, err
	}
	defer repository.Close()
	return repository.Refs(ownRefs)
}

// clear deletes what nobody needs of a repository, unless somebody uses it just now. The
// records are read while nobody can use it: a volume whose record comes later makes its
// refs later.
func (s *Store) clear(name string) (removed bool, err error) {
	release, ok := s.guards.trySeize(name)
	if !ok {
		return false, nil
	}
	defer release()
	f, err := s.followed()
	if err != nil {
		return false, err
	}
	unneeded, err := s.unneeded(name, f)
	if err != nil {
		return false, err
	}
	if !unneeded.whole {
		return false, s.deleteRefs(name, unneeded.refs)
	}
	of, _ := s.named(name) // For people alone.
	s.step("trash repository")
	if err := s.now.Put(s.repos, name); err != nil {
		return false, err
	}
	s.settings.Log.Info("removed a repository that no volume uses", "repo", repoOf(of), "depth", of.Depth)
	return true, nil
}

func repoOf(r Repository) string {
	if r.URL.IsZero() {
		return "unknown"
	}
	return r.URL.Repo()
}

func (s *Store) deleteRefs(name string, refs []history.NamedRef) error {
	if len(refs) == 0 {
		return nil
	}
	repository, err := history.Open(s.path(reposDir, name))
	if err != nil {
		return err
	}
	defer repository.Close()
	var errs []error
	for _, ref := range refs {
		s.step("delete ref")
		if err := repository.DeleteRef(ref.Name, ref.ID); err != nil && !errors.Is(err, history.ErrNoRef) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
