package writeable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

const (
	// mostRebases is how often a push is rebased and tried again when the ref moves.
	mostRebases = 3
	// mostRounds is how often a push looks at the remote at most, whatever its refs do
	// meanwhile: one whose answers go to and fro, as behind a balancer with a mirror that is
	// late, must not keep the tree from being committed for ever. The longest way that leads
	// anywhere is half of that.
	mostRounds = 16
	// mostWait is between two of these tries, at most.
	mostWait = 2 * time.Second
)

var (
	// ErrRefDeleted says that the ref is gone from the remote: nothing is pushed until it
	// is there again.
	ErrRefDeleted = errors.New("the ref was deleted")
	// ErrSideTaken says that a branch is in the way of the volume's side branch.
	ErrSideTaken = errors.New("the side branch has others' commits")
	// ErrSideLeft says that a side branch which the volume is back from is in the way of the
	// next one.
	ErrSideLeft = errors.New("the side branch of before is still there")
	// ErrRestless says that a remote tells something else of its refs each time.
	ErrRestless = errors.New("the remote's refs go to and fro")
)

// push sends what the remote lacks. Whatever the remote says is decided on where its refs
// are then.
func (v *Volume) push(ctx context.Context) error {
	began := time.Now()
	rebases := 0
	for range mostRounds {
		if err := v.leave(ctx); err != nil {
			return err
		}
		from := v.position.Published()
		if v.position.Diverged {
			back, err := v.pushSide(ctx)
			if err != nil || !back {
				return v.pushed(began, from, err)
			}
			continue
		}
		if !v.position.HasUnpushed() && !v.offersRecord() {
			return v.pushed(began, from, nil)
		}
		up, err := v.pushRef(ctx, rebases)
		if err != nil || up == nil {
			return v.pushed(began, from, err)
		}
		// The ref, or the metadata, moved.
		if rebases == mostRebases {
			if up.tip == v.position.Base {
				v.putOffRecord()
				continue
			}
			err = fmt.Errorf("%s moved before each of %d tries", v.Ref, mostRebases+1)
			if err := v.diverge(ctx, *up, err); err != nil {
				return err
			}
			continue
		}
		rebases++
		if err := v.meet(ctx, *up); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", v.Ref, ErrRestless)
}

// pushed notes that all was pushed.
func (v *Volume) pushed(began time.Time, from object.ID, err error) error {
	if err != nil || v.position.HasUnpushed() {
		return err
	}
	v.clock.pushed()
	if from != v.position.Tip {
		v.sayPushed(time.Since(began))
	} else {
		v.sayUpToDate()
	}
	return nil
}

// pushRef pushes to the ref, and gives what the remote has if something of it moved.
func (v *Volume) pushRef(ctx context.Context, tries int) (*upstream, error) {
	branch := remote.Update{Ref: v.Ref, Tip: v.position.Tip, Expected: v.position.Base}
	if branch.Tip.IsZero() {
		return nil, nil // A record of an empty tree has nothing to go with.
	}
	pushed, err := v.send(ctx, branch)
	var moved *remote.Moved
	switch {
	case errors.As(err, &moved):
		up, err := v.fetchLater(ctx, tries)
		if err == nil && up.tip.IsZero() {
			return nil, fmt.Errorf("%s: %w", v.Ref, ErrRefDeleted)
		}
		return up, err
	case err != nil:
		return nil, err
	}
	p := v.position
	p.Base, p.Followed = p.Tip, true
	return v.sent(ctx, p, pushed, tries)
}

// send pushes a branch, and the record with it unless that was refused lately.
func (v *Volume) send(ctx context.Context, branch remote.Update) (remote.Pushed, error) {
	v.step("push")
	v.sentOver = v.position.Published()
	var record *remote.Update
	if v.offersRecord() {
		record = &remote.Update{Ref: history.MetadataRef, Tip: v.position.Metadata, Expected: v.position.MetadataBase}
	}
	pushed, err := v.Remote.Push(ctx, branch, record)
	if err == nil && record == nil && v.position.HasUnrecorded() {
		pushed.Metadata = errPutOff
	}
	return pushed, err
}

// errPutOff says that the record was not offered.
var errPutOff = errors.New("the metadata was refused lately")

// offersRecord tells whether the next push takes the record along.
func (v *Volume) offersRecord() bool {
	return v.position.HasUnrecorded() && (v.clock.recordAt.IsZero() || isDue(v.clock.recordAt, time.Now()))
}

// sent keeps a position of which the branch has arrived, and gives what the remote has if
// the metadata moved.
func (v *Volume) sent(ctx context.Context, p store.Position, pushed remote.Pushed, tries int) (*upstream, error) {
	if pushed.Metadata == nil && p.HasUnrecorded() {
		p.MetadataBase = p.Metadata
		if !p.Diverged {
			p.MetadataAgreed = p.Metadata
		}
		v.clock.recordAt = time.Time{}
		v.sayRecorded()
	}
	if err := v.keep(p); err != nil {
		return nil, err
	}
	if err := v.anchor(p); err != nil {
		return nil, err
	}
	var moved *remote.Moved
	switch {
	case pushed.Metadata == nil || errors.Is(pushed.Metadata, errPutOff):
		return nil, nil
	case errors.As(pushed.Metadata, &moved):
		return v.fetchLater(ctx, tries)
	case ctx.Err() != nil || isOfConnection(pushed.Metadata):
		return nil, pushed.Metadata // The remote has not refused it.
	}
	v.putOffRecord()
	v.sayRecordRefused(pushed.Metadata)
	return nil, nil
}

// isOfConnection tells errors of a push that nobody decided on.
func isOfConnection(err error) bool {
	var unknown *remote.Unknown
	return errors.As(err, &unknown) || remote.IsSilence(err)
}

func (v *Volume) putOffRecord() { v.clock.recordAt = time.Now().Add(recordRetry) }

// meet takes the volume to where the remote is, so that it can be pushed: on the ref, or
// on the side branch where that cannot be.
func (v *Volume) meet(ctx context.Context, up upstream) error {
	move := v.follow
	if up.tip == v.position.Base {
		move = v.takeOver // The metadata alone moved.
	}
	err := move(ctx, up)
	var conflict *history.Conflict
	var written *treeConflict
	if errors.As(err, &conflict) || errors.As(err, &written) {
		return v.diverge(ctx, up, err)
	}
	return err
}

// pushSide pushes to the side branch, unless the volume can go back to the ref.
func (v *Volume) pushSide(ctx context.Context) (back bool, err error) {
	for tries := range mostRebases + 1 {
		up, err := v.fetchAnew(ctx)
		if err != nil {
			return false, err
		}
		if back, err := v.heal(ctx, up); back || err != nil {
			return back, err
		}
		if !v.position.HasUnpushed() && !v.offersRecord() {
			return false, nil
		}
		if up.record != v.position.MetadataBase {
			p, err := v.rerecord(v.position, v.Side, up)
			if err != nil {
				return false, err
			}
			if err := v.supersede(p); err != nil {
				return false, err
			}
		}
		expected, err := v.sideExpected(ctx, up)
		if err != nil {
			return false, err
		}
		pushed, err := v.send(ctx, remote.Update{Ref: v.Side, Tip: v.position.Tip, Expected: expected})
		var moved *remote.Moved
		if errors.As(err, &moved) {
			continue
		}
		if err != nil {
			return false, err
		}
		p := v.position
		p.Side, p.Left, p.LeftAt = p.Tip, object.ID{}, object.ID{}
		p.Late = p.Late && !v.late.isCommitted
		again, err := v.sent(ctx, p, pushed, tries)
		if err != nil || again == nil {
			return false, err
		}
	}
	if !v.position.HasUnpushed() {
		v.putOffRecord() // Only the metadata moved each time.
		return false, nil
	}
	return false, fmt.Errorf("%s moved before each of %d tries: %w", v.Side, mostRebases+1, ErrSideTaken)
}

// sideExpected is where the side branch is now, if the volume may go on from there. One that
// it left has to go first.
func (v *Volume) sideExpected(ctx context.Context, up upstream) (object.ID, error) {
	if up.side.IsZero() || up.side == v.position.Side {
		return up.side, nil
	}
	contains, err := v.Repository.Contains(v.position.Tip, up.side)
	if err != nil && !errors.Is(err, history.ErrNotCommit) {
		return object.ID{}, err
	}
	if contains {
		return up.side, nil // Only the answer to a push was lost.
	}
	last, err := v.lastOwn(up.side)
	if err != nil {
		return object.ID{}, err
	}
	left, err := v.isLeft(last, up)
	if err != nil {
		return object.ID{}, err
	}
	if !left {
		if err := v.checkMerged(ctx, up); err != nil {
			return object.ID{}, err
		}
	}
	if last != up.side {
		return object.ID{}, fmt.Errorf("%w: somebody put commits on %s, which stays as it is; delete or rename it", ErrSideLeft, v.Side)
	}
	var declined *remote.Declined
	if err = v.Remote.DeleteBranch(ctx, v.Side, up.side); errors.As(err, &declined) {
		err = fmt.Errorf("%w: %s cannot be deleted by the volume; delete or rename it: %w", ErrSideLeft, v.Side, err)
	}
	return object.ID{}, err
}

// checkMerged has an error if the remote's side branch is not this volume's, or if it has
// commits that the ref has not.
func (v *Volume) checkMerged(ctx context.Context, up upstream) error {
	own, err := v.ownsSide(up)
	if err != nil {
		return err
	}
	if !own {
		return fmt.Errorf("%w: %s is not of this volume, and not touched; delete or rename it", ErrSideTaken, v.Side)
	}
	if !up.tip.IsZero() {
		_, open, err := v.openSide(ctx, up)
		if err != nil || !open {
			return err
		}
	}
	return fmt.Errorf("%w: %s has commits that neither %s has nor the volume's tree, and stays as it is; merge it into %s",
		ErrSideTaken, v.Side, v.Ref, v.Ref)
}

// fetchLater fetches after a moment. What is fetched is pushed upon at once then, so that
// the others who raced have the least time to be quicker again.
func (v *Volume) fetchLater(ctx context.Context, tries int) (*upstream, error) {
	if err := v.pause(ctx, tries+1); err != nil {
		return nil, err
	}
	up, err := v.fetchAnew(ctx)
	return &up, err
}

// pause waits a moment, so that writers who raced do not race again.
func (v *Volume) pause(ctx context.Context, tries int) error {
	timer := time.NewTimer(time.Duration(v.Jitter() * float64(mostWait) * float64(min(tries, mostRebases)) / mostRebases))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tipTime is when the tip was committed, as far as that can be told: it was not pushed
// since. Clocks differ, and a time to come would have the push wait for it.
func (v *Volume) tipTime() time.Time {
	now := time.Now()
	if described, err := v.Repository.Describe(v.position.Tip); err == nil {
		return earlier(described.Committer.When, now)
	}
	return now
}
