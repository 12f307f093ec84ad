package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"liken.sh/gitvolume/internal/history"
)

// Repairer removes what processes of git that are dead left half done in the bare
// repository at dir; *remote.Command is it.
type Repairer interface {
	Recover(ctx context.Context, dir string) error
}

// Recover repairs what a killed process or a power cut left in the repositories. It is
// called once, before anybody uses one: nothing in a lock tells whether its maker lives.
// A repository that cannot be opened afterwards is set aside, and the next use makes a new
// one; whether the objects that a volume needs are whole, who uses it finds out. The error
// is of repositories that could not be repaired, whatever others were.
func (s *Store) Recover(ctx context.Context, git Repairer) error {
	names, err := s.repositoryNames()
	if err != nil {
		return fmt.Errorf("recover the repositories: %w", err)
	}
	var errs []error
	for _, name := range names {
		release, err := s.guards.seize(ctx, name)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if err := s.recover(ctx, name, git); err != nil {
			errs = append(errs, fmt.Errorf("recover repository %s: %w", name, err))
		}
		release()
	}
	return errors.Join(errs...)
}

func (s *Store) recover(ctx context.Context, name string, git Repairer) error {
	dir := s.path(reposDir, name)
	of, _ := s.named(name) // For people alone.
	repaired, failed := repair(ctx, dir, git)
	if n := len(repaired.Locks) + len(repaired.Refs) + len(repaired.Objects) + len(repaired.Indexes); n > 0 {
		s.settings.Log.Info("repaired a repository", "repo", repoOf(of), "locks", len(repaired.Locks),
			"refs", len(repaired.Refs), "objects", len(repaired.Objects), "indexes", len(repaired.Indexes))
	}
	unusable := opens(dir)
	if unusable == nil || IsOfTheMachine(unusable) || IsOfTheMachine(failed) || ctx.Err() != nil {
		return errors.Join(failed, unusable)
	}
	_, err := s.setAsideRepository(name, about{Repository: of.URL.String(), Why: errors.Join(failed, unusable).Error()})
	return err
}

// repair does it in the order in which each finds what it needs: the files that make the
// directory a repository, no half-done work of git, and then no locks and no half-written
// objects of anybody's.
func repair(ctx context.Context, dir string, git Repairer) (history.Recovered, error) {
	if err := isDirectoryOrMissing(dir); err != nil {
		return history.Recovered{}, err
	}
	failed := errors.Join(history.Create(dir), git.Recover(ctx, dir))
	repaired, err := history.Recover(dir)
	return repaired, errors.Join(failed, err)
}

func opens(dir string) error {
	if err := isDirectoryOrMissing(dir); err != nil {
		return err
	}
	repository, err := history.Open(dir)
	if err == nil {
		repository.Close()
		return nil
	}
	if err = BlameForOpening(dir, err); errors.Is(err, history.ErrDamaged) || IsOfTheMachine(err) {
		return err
	}
	return nil // It opens now.
}

// IsOfTheMachine tells a failure of which some part says nothing about the repository, such
// as a full disk: it is as good as before when that has passed.
func IsOfTheMachine(err error) bool {
	switch err := err.(type) { //nolint:errorlint // All that is joined is looked at, and not the first of a kind.
	case syscall.Errno:
		switch err {
		case syscall.ENOENT, syscall.EEXIST, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENOTEMPTY:
			return false
		}
		return true
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), IsOfTheMachine)
	case interface{ Unwrap() error }:
		return IsOfTheMachine(err.Unwrap())
	}
	return false
}
