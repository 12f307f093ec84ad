package remote

import (
	"context"
	"sync"
)

// Slots bounds how many runs of background work a node has at a time. Work that somebody
// waits for does not need one.
type Slots struct {
	free chan struct{}
}

// NewSlots gives that many.
func NewSlots(number int) *Slots { return &Slots{free: make(chan struct{}, number)} }

// Take waits for a slot and returns what gives it back. It gives up with ctx.
func (s *Slots) Take(ctx context.Context) (release func(), err error) {
	return s.takeUnless(ctx, nil)
}

// takeUnless waits for a slot until it is not needed any more; what it returns then
// releases nothing.
func (s *Slots) takeUnless(ctx context.Context, needless <-chan struct{}) (release func(), err error) {
	select {
	case s.free <- struct{}{}:
		return sync.OnceFunc(func() { <-s.free }), nil
	case <-needless:
		return func() {}, nil
	case <-ctx.Done():
		return nil, endReason(ctx)
	}
}
