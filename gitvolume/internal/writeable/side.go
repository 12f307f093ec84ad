package writeable

import (
	"context"
	"errors"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/store"
)

// openSide looks at a side branch that the remote has: where it left the ref, nil if it is
// not this volume's, and whether it holds what the ref has not.
func (v *Volume) openSide(ctx context.Context, up upstream) (base *object.ID, open bool, err error) {
	defer v.Keeper.Native()()
	own, err := v.ownsSide(up)
	if err != nil || !own {
		return nil, false, err
	}
	fork, err := v.Repository.MergeBase(up.tip, up.side)
	if err != nil && !errors.Is(err, history.ErrUnrelated) {
		return nil, false, err
	}
	healed, err := v.Repository.Healed(ctx, history.Replay{Base: fork, Tip: up.side, Onto: up.tip, Merger: v.Merger})
	return &fork, !healed, err
}

// reconcileSide takes a tree that nobody has to the volume's side branch, where it went on
// on another node, or back from it; done says that the ref need not be looked at.
func (v *Volume) reconcileSide(ctx context.Context, up upstream) (done bool, err error) {
	if v.position.Diverged {
		back, err := v.heal(ctx, up)
		if back || err != nil || up.side.IsZero() || up.side == v.position.Side {
			return true, err
		}
	}
	base, open, err := v.openSide(ctx, up)
	switch {
	case err != nil || base == nil:
		return v.position.Diverged, err
	case !open:
		return v.position.Diverged, v.passBy(up)
	}
	if v.pending > 0 {
		v.sayUpstreamMoved(up.side)
		return true, nil
	}
	then, _, err := v.onto(ctx, v.position.Published(), up.side)
	var conflict *history.Conflict
	if errors.As(err, &conflict) {
		// What this node has beyond that is pushed to nowhere, which the push then says.
		return v.position.Diverged, nil
	}
	if err != nil {
		return false, err
	}
	then.Base, then.Side, then.Diverged, then.Followed = *base, up.side, true, true
	// It may have been about to be deleted, when the ref had what is on it.
	then.Leaving, then.Left, then.LeftAt = object.ID{}, object.ID{}, object.ID{}
	if then, err = v.rerecord(then, v.Side, up); err != nil {
		return false, err
	}
	err = v.moveTo(ctx, then)
	var written *treeConflict
	switch {
	case errors.As(err, &written) && !written.moved:
		v.sayUpstreamMoved(up.side)
		return true, nil
	case err != nil && written == nil:
		return false, err
	}
	v.owe()
	v.sayDiverged(errOtherNode)
	return true, nil
}

// passBy has a volume that is on the ref leave a side branch of which the ref has all: once
// the ref is changed further, that cannot be seen any more.
func (v *Volume) passBy(up upstream) error {
	if v.position.Diverged {
		return nil
	}
	own, err := v.lastOwn(up.side)
	if err != nil {
		return err
	}
	return v.keep(leftBehind(v.position, own, up))
}

// leftBehind is a position that has left behind a side branch with that last commit of the
// volume's. Another one that was to be deleted is not there any more.
func leftBehind(p store.Position, own object.ID, up upstream) store.Position {
	p.Left, p.LeftAt = own, up.tip
	if p.Leaving != up.side {
		p.Leaving = object.ID{}
	}
	return p
}

// goneBack is a position of a volume that goes back to the ref where the remote is now: what
// it has of the side branch beyond the ref is behind it. What it has not another node pushed,
// or the ref was forced back from, which the next start takes in unless the ref has that too.
func (v *Volume) goneBack(ctx context.Context, p store.Position, up upstream) (store.Position, error) {
	if up.side.IsZero() {
		return p, nil
	}
	own, err := v.lastOwn(up.side)
	if err != nil || own.IsZero() {
		return p, err
	}
	if left, err := v.isLeft(own, up); left || err != nil {
		return p, err
	}
	if known, err := v.isAbove(own); known || err != nil {
		return leftBehind(p, own, up), err
	}
	base, open, err := v.openSide(ctx, up)
	if err != nil || base == nil || open {
		return p, err
	}
	return leftBehind(p, own, up), nil
}

// isAbove tells whether a commit is one of those that the volume has beyond the ref.
func (v *Volume) isAbove(commit object.ID) (bool, error) {
	if below, err := v.has(v.position.Base, commit); below || err != nil {
		return false, err
	}
	return v.has(v.position.Tip, commit)
}

// isLeft tells whether a commit of the volume's on a side branch is one that it left behind.
// Once the ref was forced none is: the branch may be all that has what is on it.
func (v *Volume) isLeft(own object.ID, up upstream) (bool, error) {
	if goesOn, err := v.has(up.tip, v.position.LeftAt); !goesOn || err != nil {
		return false, err
	}
	if leaving, err := v.has(v.position.Leaving, own); leaving || err != nil {
		return leaving, err
	}
	return v.has(v.position.Left, own)
}

// errOtherNode is why a volume is diverged that was not before.
var errOtherNode = errors.New("it went on there on another node")
