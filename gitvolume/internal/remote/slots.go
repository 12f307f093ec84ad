package remote

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// ErrTurnOver says that a run was called off because it took long, and others waited for its
// slot.
var ErrTurnOver = fmt.Errorf("%w: its turn is over, and others wait", ErrTimeout)

// Errand is what a slot is for.
type Errand int

const (
	// Asking is to see, or to fetch, what the remote has.
	Asking Errand = iota
	// Pushing is to bring the remote what this node alone has. It goes first.
	Pushing
)

// Slots bounds how many runs of background work a node has at a time. Work that somebody
// waits for does not need one.
//
// No remote keeps a run to another one from its slot for much longer than LookTimeout,
// whatever it does. Those to suspects, which were silent or too slow the last time, never
// have all the slots among them, nor do those that turn out to take long: one of these too
// many is called off when another waits.
type Slots struct {
	mu   sync.Mutex
	free int
	// suspect is how many runs to suspects may be begun, besides.
	suspect int
	// silent are the repositories, by their identity, that were silent the last time, and slow
	// those of which a run was called off, with how long the next may keep other suspects waiting.
	silent map[string]bool
	slow   map[string]time.Duration
	hosts  map[string]host

	waiting []*waiter // In the order in which they came.
	running []*waiter // In the order in which they were granted a slot.
	line    line
}

// host is what is known of a host that ever kept a run waiting.
type host struct {
	// suspect says that a repository there fell silent, and none has answered since. One that
	// is known to be silent, and is again, says nothing of the others.
	suspect bool
	// silence is when a run there last ended in silence, or was called off.
	silence time.Time
}

// waiter is a run that waits for its slot, or has it.
type waiter struct {
	repository, host string
	errand           Errand
	place            int // In line.
	granted          chan struct{}
	// callOff ends the run.
	callOff context.CancelCauseFunc

	// The rest is of one that was granted a slot.

	began time.Time
	// suspected is whether it counts among those that never have all the slots.
	suspected bool
	isOver    bool // It was called off.
	timers    []*time.Timer
}

// NewSlots gives that many, of which one is kept from suspects if there are two.
func NewSlots(number int) *Slots {
	return &Slots{
		free: number, suspect: max(1, number-1),
		silent: map[string]bool{}, slow: map[string]time.Duration{}, hosts: map[string]host{}, line: newLine(),
	}
}

// Take waits for a slot for a run that goes to a repository, and returns what gives it back,
// once, with how the run ended. The run has to end with within, whose cause is ErrTurnOver when
// others are to have the slot. It gives up with ctx.
func (s *Slots) Take(ctx context.Context, url attributes.URL, errand Errand) (within context.Context, release func(error), err error) {
	return s.takeUnless(ctx, url, errand, nil)
}

// takeUnless waits for a slot until it is not needed any more; what it returns then gives
// no slot back, and within is ctx.
func (s *Slots) takeUnless(ctx context.Context, url attributes.URL, errand Errand, needless <-chan struct{}) (
	within context.Context, release func(error), err error,
) {
	w := &waiter{repository: url.Identity(), host: url.CanonicalHost(), errand: errand, granted: make(chan struct{})}
	var once sync.Once
	heard := func(err error) { once.Do(func() { s.heard(w, err) }) }
	select {
	case <-needless:
		return ctx, heard, nil
	default:
	}
	within, w.callOff = context.WithCancelCause(ctx)
	s.mu.Lock()
	w.place = s.line.join(w.host)
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.granted:
		return within, func(err error) { once.Do(func() { s.release(w, err) }) }, nil
	case <-needless:
		s.leave(w)
		w.callOff(nil)
		return ctx, heard, nil
	case <-ctx.Done():
		s.leave(w)
		w.callOff(nil)
		return nil, nil, endReason(ctx)
	}
}

// leave takes away one that waits no more, or gives back what it was granted just now.
func (s *Slots) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return
	}
	s.giveBack(w)
}

func (s *Slots) release(w *waiter, err error) {
	defer w.callOff(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(w, err)
	s.giveBack(w)
}

// giveBack has others go on. The caller holds mu.
func (s *Slots) giveBack(w *waiter) {
	s.running = slices.DeleteFunc(s.running, func(other *waiter) bool { return other == w })
	for _, timer := range w.timers {
		timer.Stop()
	}
	s.line.took(w, time.Since(w.began), s.waiting)
	s.free++
	if w.suspected {
		s.suspect++
	}
	s.grant()
}

// heard notes how a run without a slot ended.
func (s *Slots) heard(w *waiter, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(w, err)
	s.grant()
}

// grant gives slots to those whose turn it is, and has others get theirs from runs that take
// long. The caller holds mu.
func (s *Slots) grant() {
	s.suspectTheLong()
	for s.free > 0 {
		next := s.next()
		if next < 0 {
			break
		}
		w := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.begin(w)
	}
	if w := s.inTheWay(); w != nil {
		w.isOver = true
		w.callOff(ErrTurnOver)
	}
}

// begin has one have a slot. The caller holds mu.
func (s *Slots) begin(w *waiter) {
	s.line.granted()
	s.free--
	if w.suspected = s.isSuspect(w); w.suspected {
		s.suspect--
	}
	w.began = time.Now()
	s.running = append(s.running, w)
	for _, age := range []time.Duration{LookTimeout, s.longest(w)} {
		w.timers = append(w.timers, time.AfterFunc(age, s.again))
	}
	close(w.granted)
}

// again grants slots when a run may have come to take long.
func (s *Slots) again() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grant()
}
