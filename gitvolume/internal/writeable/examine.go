package writeable

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// examined is the error of work with the remote, and that of the repository with it if
// that is why it failed: git tells neither apart, and a repository that is broken would be
// tried with for ever.
func (v *Volume) examined(err error) error {
	if history.IsBroken(err) || isOfRemote(err) {
		return err
	}
	if broken := v.examine(); history.IsBroken(broken) {
		return fmt.Errorf("%w; what is to be pushed cannot be read: %w", err, broken)
	}
	return err
}

// isOfRemote tells errors of the remote and the way to it, which no repository causes,
// however broken.
func isOfRemote(err error) bool {
	return remote.IsRemote(err) || slices.ContainsFunc(
		[]error{access.ErrNoCredential, ErrRefDeleted, ErrSideTaken, ErrSideLeft, ErrRestless},
		func(known error) bool { return errors.Is(err, known) },
	)
}

// examine reads what a push reads: the whole tree of the tip, and all that the remote has
// not.
func (v *Volume) examine() error {
	defer v.Keeper.Native()()
	if v.position.Tip.IsZero() {
		return nil
	}
	// What was deleted can be read as long as it is held open.
	if err := v.Repository.Reopen(); err != nil {
		return fmt.Errorf("open the repository: %w", store.BlameForOpening(v.Repository.Dir(), err))
	}
	tree, err := v.commitTree(v.position.Tip)
	if err != nil {
		return err
	}
	if _, err := v.Repository.Diff(object.ID{}, tree); err != nil {
		return err
	}
	own, err := v.Repository.Own(v.position.Published(), v.position.Tip)
	if err != nil {
		return err
	}
	before, err := v.commitTree(v.position.Published())
	if err != nil {
		return err
	}
	for _, commit := range own {
		tree, err := v.commitTree(commit)
		if err != nil {
			return err
		}
		if err := v.examineChanges(before, tree); err != nil {
			return err
		}
		before = tree
	}
	return nil
}

// examineChanges reads the files that a commit changed.
func (v *Volume) examineChanges(before, after object.ID) error {
	differences, err := v.Repository.Diff(before, after)
	if err != nil {
		return err
	}
	for _, d := range differences {
		if d.To == (history.Side{}) || d.To.Mode == object.Submodule {
			continue
		}
		blob, _, err := v.Repository.Reader(d.To.ID)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, blob)
		if err := errors.Join(err, blob.Close()); err != nil {
			return err
		}
	}
	return nil
}
