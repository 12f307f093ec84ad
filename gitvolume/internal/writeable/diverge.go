package writeable

import (
	"context"
	"errors"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
)

// diverge has the volume go on on its side branch. Nothing of the tree changes.
func (v *Volume) diverge(ctx context.Context, up upstream, why error) error {
	p := v.position
	p.Diverged, p.Side = true, object.ID{}
	p, err := v.rerecord(p, v.Side, up)
	if err != nil {
		return err
	}
	if err := v.supersede(p); err != nil {
		return err
	}
	v.owe()
	v.sayDiverged(why)
	if !p.Late {
		return nil
	}
	// What the application wrote is what the side branch is for.
	return v.commitLate(ctx, why)
}

// heal takes a diverged volume back to the ref, if that has what the side branch is for:
// what was pushed there, or all of it while nothing was, or not all for which it diverged.
// What was committed since goes on top. A volume that cannot go back stays where it is; so
// does one that has not committed yet what it diverged for: on top of upstream's change that
// would take it back. One that went back and diverged in that very moment is healed too: of
// the side branch that it has now there is nothing yet, and the one before has to go first.
func (v *Volume) heal(ctx context.Context, up upstream) (healed bool, err error) {
	p := v.position
	if up.tip.IsZero() {
		return false, nil
	}
	merged := p.Published()
	if p.Side.IsZero() || p.Late {
		merged = p.Tip
	}
	replay := history.Replay{Base: p.Base, Tip: merged, Onto: up.tip, Merger: v.Merger}
	if healed, err = v.healedBy(ctx, replay); err != nil || !healed {
		return false, err
	}
	if p.Late && !v.late.isCommitted {
		v.sayDiverged(v.late.why())
		return false, nil
	}
	then, _, err := v.onto(ctx, merged, up.tip)
	var conflict *history.Conflict
	if errors.As(err, &conflict) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if then, err = v.rerecord(then, v.Ref, up); err != nil {
		return false, err
	}
	then.Base, then.Followed, then.Diverged, then.Side, then.Late = up.tip, true, false, object.ID{}, false
	switch {
	case up.side != p.Side:
		if then, err = v.goneBack(ctx, then, up); err != nil {
			return false, err
		}
	case !p.Side.IsZero():
		then.Leaving, then.LeftAt = p.Side, up.tip
	}
	err = v.moveTo(ctx, then)
	var written *treeConflict
	switch {
	case errors.As(err, &written) && written.moved:
		return true, v.diverge(ctx, up, err)
	case errors.As(err, &written):
		return false, nil
	case err != nil:
		return false, err
	}
	v.sayHealed(up, p.Side)
	v.owe()
	return true, nil
}

func (v *Volume) healedBy(ctx context.Context, replay history.Replay) (bool, error) {
	defer v.Keeper.Native()()
	return v.Repository.Healed(ctx, replay)
}

// leave deletes the side branch that the volume is back from, unless somebody put commits
// on it meanwhile, or forced the ref back. One that stays is left behind.
func (v *Volume) leave(ctx context.Context) error {
	if v.position.Leaving.IsZero() {
		return nil
	}
	// It may have been back for long: the push that was to delete the branch failed.
	up, err := v.fetchAnew(ctx)
	if err != nil {
		return err
	}
	goesOn, err := v.has(up.tip, v.position.LeftAt)
	if err != nil {
		return err
	}
	err = errTakenBack
	if goesOn {
		err = v.Remote.DeleteBranch(ctx, v.Side, v.position.Leaving)
	}
	p := v.position
	p.Leaving, p.Left = object.ID{}, p.Leaving
	var moved *remote.Moved
	var declined *remote.Declined
	switch {
	case err == nil:
		p.Left, p.LeftAt = object.ID{}, object.ID{}
	case errors.As(err, &moved) || errors.As(err, &declined) || errors.Is(err, errTakenBack):
		v.saySideKept(err)
	default:
		return err
	}
	return v.keep(p)
}

// errTakenBack is why a side branch stays that the ref had all of.
var errTakenBack = errors.New("the ref was forced back from where it had what is on the branch")
