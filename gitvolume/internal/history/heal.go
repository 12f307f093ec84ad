package history

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/object"
)

// Healed tells whether Onto, a ref's tip, has all that Tip, its side branch's, was made
// for: it contains the tip, or replaying the own commits on it changes nothing, be it all
// of them as one change (a squash merge) or one by one (a rebase merge). A conflict is no
// error: it is not healed then. The Committer is not needed; of a zero Base the merge
// base is taken.
func (r *Repository) Healed(ctx context.Context, replay Replay) (bool, error) {
	healed, err := r.healed(ctx, replay)
	if err != nil {
		return false, fmt.Errorf("compare the side branch at %s with %s: %w", replay.Tip, replay.Onto, err)
	}
	return healed, nil
}

func (r *Repository) healed(ctx context.Context, replay Replay) (bool, error) {
	contains, err := r.Contains(replay.Onto, replay.Tip)
	if err != nil || contains {
		return contains, err
	}
	related := true
	if replay.Base.IsZero() {
		replay.Base, err = r.MergeBase(replay.Onto, replay.Tip)
		if related = !errors.Is(err, ErrUnrelated); related && err != nil {
			return false, err
		}
	}
	squashed, err := r.addsNothingAtOnce(ctx, replay)
	if err != nil || squashed || !related {
		return squashed, err
	}
	added, err := r.addsNothingOneByOne(ctx, replay)
	if errors.Is(err, ErrUnrelated) {
		// Its first parents do not lead to the base: others merged into it.
		return false, nil
	}
	return added, err
}

// addsNothingAtOnce tells whether all that the side branch changed is in Onto.
func (r *Repository) addsNothingAtOnce(ctx context.Context, replay Replay) (bool, error) {
	var base object.ID
	if !replay.Base.IsZero() {
		tree, err := r.treeOf(replay.Base)
		if err != nil {
			return false, err
		}
		base = tree
	}
	onto, err := r.treeOf(replay.Onto)
	if err != nil {
		return false, err
	}
	tip, err := r.treeOf(replay.Tip)
	if err != nil {
		return false, err
	}
	merged, conflicts, err := r.merge(ctx, replay.Merger, base, onto, tip)
	return err == nil && len(conflicts) == 0 && merged == onto, err
}

// addsNothingOneByOne tells whether Onto is as it was when each of the commits was
// replayed on it.
func (r *Repository) addsNothingOneByOne(ctx context.Context, replay Replay) (bool, error) {
	own, err := r.ownOf(replay)
	if err != nil {
		return false, err
	}
	onto, err := r.treeOf(replay.Onto)
	if err != nil {
		return false, err
	}
	tree := onto
	for _, commit := range own {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		done, err := r.replay(ctx, replay.Merger, commit, tree)
		var conflict *Conflict
		switch {
		case errors.As(err, &conflict):
			return false, nil
		case err != nil:
			return false, err
		}
		tree = done.tree
	}
	return tree == onto, nil
}
