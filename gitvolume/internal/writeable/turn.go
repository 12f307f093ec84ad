package writeable

import (
	"context"
	"sync"
)

// turn is one of the node's slots for background work: what the volume waits for before it
// pushes of its own accord. The tree is worked on meanwhile.
type turn struct {
	cancel  context.CancelFunc // Ends the wait; nil: there is none.
	waiting sync.WaitGroup
	slot    *slot // nil: the volume has none.
}

// slot is what a turn is.
type slot struct {
	// within ends when the slot is to be another's: the push that is made in it took long.
	within  context.Context
	release func(error)
}

func (t *turn) isAwaited() bool { return t.cancel != nil && t.slot == nil }

// until is the context of work in the slot, if there is one.
func (t *turn) until(ctx context.Context) context.Context {
	if t.slot == nil {
		return ctx
	}
	return t.slot.within
}

// needsTurn tells whether work with the remote has to wait for a slot. Somebody waits for the
// first push of a volume that no pod has any more.
func (v *Volume) needsTurn() bool {
	select {
	case <-v.tried:
	default:
		if v.watch == nil {
			return false
		}
	}
	if v.turn.slot != nil && v.turn.slot.within.Err() != nil {
		v.endTurn(context.Canceled) // The tree took all of it.
	}
	return v.turn.slot == nil
}

// awaitTurn has the mail bring a slot.
func (v *Volume) awaitTurn() {
	if v.turn.isAwaited() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	v.turn.cancel = cancel
	v.turn.waiting.Go(func() {
		if within, release, err := v.Remote.Turn(ctx); err == nil {
			v.mail.put(func() { v.mail.turn = &slot{within: within, release: release} })
		}
	})
}

// endTurn gives the slot back, or waits for none any more; err is how the work ended.
func (v *Volume) endTurn(err error) {
	if v.turn.cancel == nil {
		return // Neither.
	}
	v.turn.cancel()
	v.turn.waiting.Wait()
	v.takeTurn()
	if v.turn.slot != nil {
		v.turn.slot.release(err)
	}
	v.turn.cancel, v.turn.slot = nil, nil
}

// putTurn gives back a slot that was not used.
func (v *Volume) putTurn() {
	if v.turn.slot != nil {
		v.endTurn(context.Canceled)
	}
}

// takeTurn takes what the mail brought.
func (v *Volume) takeTurn() {
	v.mail.mu.Lock()
	defer v.mail.mu.Unlock()
	if v.mail.turn != nil {
		v.turn.slot, v.mail.turn = v.mail.turn, nil
	}
}
