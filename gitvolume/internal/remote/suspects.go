package remote

import (
	"context"
	"errors"
	"slices"
	"time"
)

// longTurn is how long a run may keep other suspects waiting, which may wait longer than others:
// a large fetch that was called off has to begin anew. It is twice as long each time, so that
// whatever takes long comes to its end.
const longTurn = 5 * LookTimeout

// note notes whether the remote answered, and in time; of a run that its caller called off it
// is not known. The caller holds mu.
func (s *Slots) note(w *waiter, err error) {
	h, isKnown := s.hosts[w.host]
	switch {
	case w.isOver:
		next := s.longest(w)
		if w.isOfAge(next) {
			next *= 2
		}
		s.slow[w.repository] = next
		h.silence = time.Now()
		s.hosts[w.host] = h
	case errors.Is(err, context.Canceled):
	case IsSilence(err):
		h.suspect = h.suspect || !s.silent[w.repository]
		h.silence = time.Now()
		s.hosts[w.host] = h
		s.silent[w.repository] = true
	default:
		if !w.isOfAge(LookTimeout) {
			delete(s.slow, w.repository)
		}
		if isKnown {
			h.suspect = false
			s.hosts[w.host] = h
			delete(s.silent, w.repository)
		}
	}
}

func (s *Slots) isSuspect(w *waiter) bool {
	_, isSlow := s.slow[w.repository]
	return isSlow || s.silent[w.repository] || s.hosts[w.host].suspect
}

// longest is how long a run may keep other suspects waiting.
func (s *Slots) longest(w *waiter) time.Duration { return max(longTurn, s.slow[w.repository]) }

func (w *waiter) isOfAge(age time.Duration) bool { return time.Since(w.began) >= age }

// suspectTheLong has runs that take long count among those to suspects, as far as they may: a
// push first, of which the others would be called off. The caller holds mu.
func (s *Slots) suspectTheLong() {
	for _, errand := range []Errand{Pushing, Asking} {
		for _, w := range s.running {
			if s.suspect > 0 && w.errand == errand && !w.suspected && w.isOfAge(LookTimeout) {
				w.suspected = true
				s.suspect--
			}
		}
	}
}

// inTheWay is the run that is to end because it takes long and another waits for its slot;
// nil: there is none, or one that is to end has not ended yet. The caller holds mu.
func (s *Slots) inTheWay() *waiter {
	if slices.ContainsFunc(s.running, func(w *waiter) bool { return w.isOver }) {
		return nil
	}
	isSuspect := s.isSuspect
	isShort := func(w *waiter) bool { return !w.isOfAge(LookTimeout) }
	if !slices.ContainsFunc(s.running, isShort) && slices.ContainsFunc(s.waiting, func(w *waiter) bool { return !isSuspect(w) }) {
		return s.leastLoss()
	}
	if s.suspect == 0 && slices.ContainsFunc(s.waiting, isSuspect) {
		i := slices.IndexFunc(s.running, func(w *waiter) bool { return w.suspected && w.isOfAge(s.longest(w)) })
		if i >= 0 {
			return s.running[i]
		}
	}
	return nil
}

// leastLoss is the run of which the least is lost: one that pushes nothing, and of these the
// last. The caller holds mu.
func (s *Slots) leastLoss() (least *waiter) {
	for _, w := range s.running {
		if least == nil || w.errand == Asking || least.errand == Pushing {
			least = w
		}
	}
	return least
}

// isBefore tells whether one suspect's turn is before another's that came earlier: its host
// was not silent for longer, or it is the one of the two that may answer. The caller holds mu.
func (s *Slots) isBefore(w, earlier *waiter) bool {
	if w.errand != earlier.errand {
		return w.errand == s.line.first()
	}
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
			if healthy < 0 || s.line.isBefore(w, s.waiting[healthy]) {
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
