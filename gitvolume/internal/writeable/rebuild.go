package writeable

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// IsRepositoryBroken tells of an error that says that the store's repository lacks what it
// has to have, or cannot be read: it has to be set aside, and Rebuild to follow with a new
// one.
func IsRepositoryBroken(err error) bool {
	return errors.Is(err, history.ErrMissing) || errors.Is(err, history.ErrDamaged)
}

// Rebuild finds a position for a tree whose repository was lost, in a new and empty one,
// before Prepare or Resume. The tree stays as it is: it is compared with the last commit
// that the remote has of it, and what it has beyond, committed or not, is committed again.
// Where the remote has that commit no more, it is put on the side branch, for a person to
// merge. The remote has to be asked for that.
func (v *Volume) Rebuild(ctx context.Context) error {
	release, err := v.Use(ctx)
	if err != nil {
		return err
	}
	defer release()
	up, err := v.fetch(ctx, remote.Foreground)
	if err != nil {
		return fmt.Errorf("fetch a lost repository again: %w", err)
	}
	p := store.Position{Tree: v.position.Tree, Followed: v.position.Followed, MetadataBase: up.record}
	p.Metadata = v.recordCommit(up)
	p.MetadataAgreed = p.Metadata
	switch found, err := v.lastKnown(up); {
	case err != nil:
		return err
	case found == nil:
		p.Tip, p.Base, p.Diverged = up.tip, up.tip, true
	default:
		p.Tip, p.Base, p.Side, p.Diverged = found.tip, found.base, found.side, found.diverged
	}
	if err := v.anchor(p); err != nil {
		return err
	}
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
