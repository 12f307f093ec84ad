package writeable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/worktree"
)

// Rebuild finds a position for a tree whose repository was lost, in a new and empty one,
// before Prepare or Resume. The tree stays as it is: it is compared with the last commit
// that the remote has of it, and what it has beyond, committed or not, is committed again.
// Where the remote has that commit no more, it is put on the side branch, for a person to
// merge. A move that was not finished is given up, and what it left in the tree is cleared
// away; that of a tree which was just being made is begun anew. The remote has to be asked
// for that.
func (v *Volume) Rebuild(ctx context.Context) error {
	release, err := v.Use(ctx)
	if err != nil {
		return err
	}
	defer release()
	up, err := v.fetch(ctx)
	if err != nil {
		return fmt.Errorf("fetch a lost repository again: %w", err)
	}
	if move := v.position.Move; move != nil {
		if err := v.clearAway(ctx, move); err != nil {
			return err
		}
		if move.FromTree.IsZero() && v.position.Tip.IsZero() {
			return v.beginAnew(ctx, up)
		}
	}
	p := store.Position{Tree: v.position.Tree, Followed: v.position.Followed}
	if err := v.lastAgreed(&p, up); err != nil {
		return err
	}
	switch found, err := v.lastKnown(up); {
	case err != nil:
		return err
	case found == nil:
		// All of the tree is as if written over what upstream has.
		p.Tip, p.Base, p.Diverged, p.Late = up.tip, up.tip, true, true
	default:
		p.Tip, p.Base, p.Side, p.Diverged = found.tip, found.base, found.side, found.diverged
	}
	p.Left, p.LeftAt, p.Late = v.position.Left, v.position.LeftAt, p.Late || v.position.Late
	if !p.Diverged {
		p.Leaving = v.position.Leaving
	}
	if err := v.anchor(p); err != nil {
		return err
	}
	return v.keep(p)
}

// lastAgreed has a position begin with the record that the volume and the remote last agreed
// on, none if there was none, as long as the remote's goes on from that: what of the tree is
// not in it is the volume's own.
func (v *Volume) lastAgreed(p *store.Position, up upstream) error {
	p.Partial = true
	p.Metadata, p.MetadataBase = v.recordCommit(up), up.record
	was := v.position.MetadataAgreed
	has, err := v.has(p.Metadata, was)
	if err != nil {
		return err
	}
	if has || was.IsZero() {
		p.Metadata, p.MetadataBase = was, was
	}
	p.MetadataAgreed = p.Metadata
	return nil
}

// clearAway clears the tree of what a move left that nobody can finish any more.
func (v *Volume) clearAway(ctx context.Context, move *store.Move) error {
	root, err := store.Identify(v.Dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && root != v.position.Tree {
		return nil // It is not the volume's, of which Prepare tells.
	}
	if err != nil {
		return err
	}
	known, err := v.knownOf(move)
	if err != nil {
		return err
	}
	tree, err := worktree.Open(v.Dir)
	if err != nil {
		return err
	}
	defer v.Keeper.Native()()
	mover := worktree.Mover{Tree: tree, Source: v.Repository, Fresh: v.Fresh}
	kept, err := mover.Clear(ctx, intentOf(move), known)
	if len(kept) > 0 {
		v.Log.Warn("of an unfinished move some files are kept, as they may be the application's", "paths", printed(kept))
	}
	return errors.Join(err, tree.Close())
}

// knownOf is in what the trees of a move differ. Where they held commits that are lost with
// the repository, it is what upstream changed, and what was remembered of the tree before
// that.
func (v *Volume) knownOf(move *store.Move) ([]history.Difference, error) {
	defer v.Keeper.Native()()
	known, err := v.Repository.Diff(move.FromTree, move.ToTree)
	if !errors.Is(err, history.ErrMissing) {
		return known, err
	}
	before, err := v.commitTree(v.position.Base)
	if err == nil {
		var after object.ID
		if after, err = v.commitTree(move.Then.Base); err == nil {
			known, err = v.Repository.Diff(before, after)
		}
	}
	if errors.Is(err, history.ErrMissing) {
		return nil, nil
	}
	_, memory := v.Keeper.Memory()
	for i := range known {
		if was := memory.Entry(known[i].Path); was.Mode != 0 && was.Mode != object.Directory {
			known[i].From = history.Side{Mode: was.Mode, ID: was.Blob}
		}
	}
	return known, err
}

// beginAnew has a tree that was just being made be made of what it was begun with, or of
// what the remote has now if it has that no more. What is in it already, Prepare finds there.
func (v *Volume) beginAnew(ctx context.Context, up upstream) error {
	then, err := v.begin(ctx, up)
	if err != nil {
		return err
	}
	then.Tree = v.position.Tree
	if was := v.position.Move.Then.Tip; !then.Diverged {
		switch has, err := v.has(up.tip, was); {
		case err != nil:
			return err
		case has:
			then.Tip, then.Base = was, was
		}
	}
	tree, err := v.commitTree(then.Tip)
	if err != nil {
		return err
	}
	if err := v.setRef(v.Refs.Next, then.Tip); err != nil {
		return err
	}
	if err := v.setRef(v.Refs.NextMetadata, then.Metadata); err != nil {
		return err
	}
	p := store.Position{Tree: then.Tree}
	p.Move = &store.Move{To: then.Tip, ToTree: tree, Token: v.position.Move.Token, Then: then}
	return v.keep(p)
}

// known is where a lost position begins anew.
type known struct {
	tip, base, side object.ID
	diverged        bool
}

// lastKnown is the last commit of the volume that the remote still has; nil for none.
func (v *Volume) lastKnown(up upstream) (*known, error) {
	was := v.position
	if was.Diverged && !up.side.IsZero() {
		has, err := v.has(up.side, was.Published())
		if err != nil {
			return nil, err
		}
		if has {
			base, err := v.Repository.MergeBase(up.tip, up.side)
			if err != nil && !errors.Is(err, history.ErrUnrelated) {
				return nil, err
			}
			return &known{tip: was.Published(), base: base, side: up.side, diverged: true}, nil
		}
	}
	if was.Base.IsZero() && up.tip.IsZero() {
		return &known{diverged: was.Diverged}, nil
	}
	has, err := v.has(up.tip, was.Base)
	if err != nil || !has {
		return nil, err
	}
	return &known{tip: was.Base, base: was.Base, diverged: was.Diverged}, nil
}

// has tells whether a tip's history holds a commit, which need not be in the repository.
func (v *Volume) has(tip, commit object.ID) (bool, error) {
	if tip.IsZero() || commit.IsZero() {
		return false, nil
	}
	has, err := v.Repository.Contains(tip, commit)
	if errors.Is(err, history.ErrMissing) {
		return false, nil
	}
	return has, err
}
