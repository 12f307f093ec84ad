package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// Slots bounds how many runs of background work a node has at a time. Work that somebody
// waits for does not need one. Runs that go to a remote that was silent the last time, and
// hold their slot for as long as it is, never have all the slots among them, and take turns
// by host.
type Slots struct {
	mu   sync.Mutex
	free int
	// suspect is how many runs to suspects may be begun, besides.
	suspect int
	// silent are the repositories, by their identity, that were silent the last time.
	silent  map[string]bool
	hosts   map[string]host
	waiting []*waiter // In the order in which they came.
}

// host is what is known of a host that was ever silent.
type host struct {
	// suspect says that a repository there fell silent, and none has answered since. One that
	// is known to be silent, and is again, says nothing of the others.
	suspect bool
	// silence is when a run there ended in silence last.
	silence time.Time
}

// waiter is a run that waits for its slot.
type waiter struct {
	repository, host string
	granted          chan struct{}
	// suspected is whether it went to a suspect when the slot was granted.
	suspected bool
}

// NewSlots gives that many, of which one is kept from suspects if there are two.
func NewSlots(number int) *Slots {
	return &Slots{free: number, suspect: max(1, number-1), silent: map[string]bool{}, hosts: map[string]host{}}
}

// Take waits for a slot for a run that goes to a repository, and returns what gives it back,
// once, with how the run ended. It gives up with ctx.
func (s *Slots) Take(ctx context.Context, url attributes.URL) (release func(error), err error) {
	return s.takeUnless(ctx, url, nil)
}

// takeUnless waits for a slot until it is not needed any more; what it returns then gives
// no slot back.
func (s *Slots) takeUnless(ctx context.Context, url attributes.URL, needless <-chan struct{}) (release func(error), err error) {
	w := &waiter{repository: url.Identity(), host: url.CanonicalHost(), granted: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	select {
	case <-w.granted:
	case <-needless:
		s.leave(w)
		return func(err error) { s.heard(w, err) }, nil
	case <-ctx.Done():
		s.leave(w)
		return nil, endReason(ctx)
	}
	var once sync.Once
	return func(err error) { once.Do(func() { s.release(w, err) }) }, nil
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(w, err)
	s.giveBack(w)
}

// giveBack has others go on. The caller holds mu.
func (s *Slots) giveBack(w *waiter) {
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

// note notes whether the remote answered; of a run that was called off it is not known. The
// caller holds mu.
func (s *Slots) note(w *waiter, err error) {
	h, isKnown := s.hosts[w.host]
	switch {
	case errors.Is(err, context.Canceled):
	case IsSilence(err):
		h.suspect = h.suspect || !s.silent[w.repository]
		h.silence = time.Now()
		s.hosts[w.host] = h
		s.silent[w.repository] = true
	case isKnown:
		h.suspect = false
		s.hosts[w.host] = h
		delete(s.silent, w.repository)
	}
}

func (s *Slots) isSuspect(w *waiter) bool { return s.silent[w.repository] || s.hosts[w.host].suspect }

// grant gives slots to those whose turn it is. The caller holds mu.
func (s *Slots) grant() {
	for s.free > 0 {
		next := s.next()
		if next < 0 {
			return
		}
		w := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.free--
		if w.suspected = s.isSuspect(w); w.suspected {
			s.suspect--
		}
		close(w.granted)
	}
}

// isBefore tells whether one suspect's turn is before another's that came earlier: its host
// was not silent for longer, or it is the one of the two that may answer. The caller holds mu.
func (s *Slots) isBefore(w, earlier *waiter) bool {
	if by := s.hosts[w.host].silence.Compare(s.hosts[earlier.host].silence); by != 0 {
		return by < 0
	}
	return !s.silent[w.repository] && s.silent[earlier.repository]
}

// next is the index of whose turn it is; -1: nobody's. The caller holds mu.
func (s *Slots) next() int {
	healthy, suspect := -1, -1
	for i, w := range s.waiting {
		switch {
		case !s.isSuspect(w):
			if healthy < 0 {
				healthy = i
			}
		case s.suspect > 0 && (suspect < 0 || s.isBefore(w, s.waiting[suspect])):
			suspect = i
		}
	}
	if healthy < 0 || suspect >= 0 && suspect < healthy {
		return suspect
	}
	return healthy
}
