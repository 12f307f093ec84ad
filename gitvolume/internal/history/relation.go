package history

import (
	"errors"
	"fmt"
	"slices"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// ErrUnrelated says that two commits have no history in common, or not the one asked for.
var ErrUnrelated = errors.New("the commits are not related")

// Contains tells whether the tip's history holds the commit, or is it.
func (r *Repository) Contains(tip, commit object.ID) (bool, error) {
	if tip == commit {
		return true, nil
	}
	if err := r.walkable(tip, commit); err != nil {
		return false, err
	}
	contains, err := r.git.DescendantOf(git.NewOidFromBytes(tip[:]), git.NewOidFromBytes(commit[:]))
	if err != nil {
		return false, fmt.Errorf("look for %s below %s: %w", commit, tip, walkError(err))
	}
	return contains, nil
}

// MergeBase is the best commit that both histories hold, or ErrUnrelated.
func (r *Repository) MergeBase(a, b object.ID) (object.ID, error) {
	if err := r.walkable(a, b); err != nil {
		return object.ID{}, err
	}
	base, err := r.git.MergeBase(git.NewOidFromBytes(a[:]), git.NewOidFromBytes(b[:]))
	if git.IsErrorCode(err, git.ErrorCodeNotFound) && git.IsErrorClass(err, git.ErrorClassMerge) {
		return object.ID{}, fmt.Errorf("find what %s and %s have in common: %w", a, b, ErrUnrelated)
	}
	if err != nil {
		return object.ID{}, fmt.Errorf("find what %s and %s have in common: %w", a, b, walkError(err))
	}
	return object.ID(*base), nil
}

// Own is what a tip has on top of a base: its first parents down to the base, the
// oldest first, without the base. The zero base is the history's begin. If the base
// is not among the first parents, the error is ErrUnrelated.
func (r *Repository) Own(base, tip object.ID) ([]object.ID, error) {
	var own []object.ID
	for at := tip; at != base; {
		own = append(own, at)
		parents, err := r.Parents(at)
		if err != nil {
			return nil, err
		}
		if len(parents) == 0 {
			if base.IsZero() {
				break
			}
			return nil, fmt.Errorf("walk from %s to %s: %w", tip, base, ErrUnrelated)
		}
		at = parents[0]
	}
	slices.Reverse(own)
	return own, nil
}

// walkable checks that libgit2 can walk from the commits, and flushes for that.
func (r *Repository) walkable(commits ...object.ID) error {
	if err := r.Flush(); err != nil {
		return err
	}
	for _, commit := range commits {
		if err := r.want(commit, git.ObjectCommit); err != nil {
			return err
		}
	}
	return nil
}

// walkError is the error of a walk that came upon a commit that cannot be read.
func walkError(err error) error {
	if git.IsErrorCode(err, git.ErrorCodeNotFound) {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}
