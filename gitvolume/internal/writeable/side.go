package writeable

import (
	"context"
	"errors"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
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
	then.Leaving, then.Left = object.ID{}, object.ID{}
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
	if err != nil || own == v.position.Left {
		return err
	}
	p := v.position
	p.Left = own
	return v.keep(p)
}

// leftAt is what Position.Left is once the volume went back to the ref where the remote is
// now: what it knows of the side branch is behind it. What it does not know another node
// pushed, which the next start takes in unless the ref has that too.
func (v *Volume) leftAt(ctx context.Context, up upstream) (object.ID, error) {
	before := v.position.Left
	if up.side.IsZero() {
		return before, nil
	}
	own, err := v.lastOwn(up.side)
	if err != nil || own.IsZero() {
		return before, err
	}
	if known, err := v.has(v.position.Tip, own); known || err != nil {
		return own, err
	}
	base, open, err := v.openSide(ctx, up)
	if err != nil || base == nil || open {
		return before, err
	}
	return own, nil
}

// isLeft tells whether a commit of the volume's on a side branch is one that it left behind.
// A branch that is to be deleted yet is not, once the ref was forced: it may be all that has
// what is on it.
func (v *Volume) isLeft(own object.ID, up upstream) (bool, error) {
	left := v.position.Left
	if !v.position.Leaving.IsZero() {
		left = v.position.Leaving
		if goesOn, err := v.has(up.tip, v.position.Base); !goesOn || err != nil {
			return false, err
		}
	}
	if own == left {
		return !own.IsZero(), nil
	}
	return v.has(left, own)
}

// errOtherNode is why a volume is diverged that was not before.
var errOtherNode = errors.New("it went on there on another node")
