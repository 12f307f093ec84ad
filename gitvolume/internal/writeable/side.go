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
	if err != nil || base == nil || !open {
		return v.position.Diverged, err
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
	then.Leaving = object.ID{}
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

// errOtherNode is why a volume is diverged that was not before.
var errOtherNode = errors.New("it went on there on another node")
