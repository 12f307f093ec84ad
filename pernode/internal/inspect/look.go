package inspect

import (
	"context"
	"errors"
	"slices"

	"liken.sh/pernode/internal/copies"
)

// lookAtAll begins a round over all copies, unless one is still going on.
func (i *Inspector) lookAtAll() {
	if i.round.silent() == 0 {
		i.round.ask(i.lookRound)
	}
}

// lookRound looks at the copies in the store, and at the volumes that have a pod
// or a fault and no copy there: only another look tells that a cause is gone.
func (i *Inspector) lookRound() {
	var volumes, held []string
	var err, holdsErr error
	<-i.list.ask(func() {
		volumes, err = i.config.Store.List()
		held, holdsErr = i.config.Store.Holds()
	})
	i.tell("its copies cannot be listed", err)
	i.tell("its holds cannot be listed", holdsErr)
	if !i.isListed() {
		for _, volume := range volumes {
			i.meter.Touch(volume)
		}
	}
	for _, volume := range i.expect(volumes, held) {
		if i.isStopped() {
			return
		}
		i.lookAndWait(volume)
	}
	if err == nil && !i.isListed() {
		close(i.listed)
	}
}

// expect makes the copies known that are listed or held, and returns all volumes
// that are known.
func (i *Inspector) expect(listed, held []string) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, volume := range listed {
		if i.subjects[volume] == nil {
			i.subjects[volume] = &subject{exists: true}
		}
	}
	for _, volume := range held {
		if i.subjects[volume] == nil {
			i.subjects[volume] = &subject{}
		}
	}
	known := make([]string, 0, len(i.subjects))
	for volume := range i.subjects {
		known = append(known, volume)
	}
	slices.Sort(known)
	return known
}

// lookAndWait looks at a copy and goes on after a moment whatever comes of it.
func (i *Inspector) lookAndWait(volume string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	await(ctx, i.look(volume))
}

// look has a copy looked at. The channel is closed when that is done, which may
// be never; it is nil for a copy that is known not to answer.
func (i *Inspector) look(volume string) <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.subjects[volume]
	if s == nil {
		s = &subject{}
		i.subjects[volume] = s
	}
	isHung := s.look.silent() > patience
	done := s.look.ask(func() { i.lookAt(volume, s) })
	if isHung {
		return nil
	}
	return done
}

// lookAt is, with the round and the space, the only place where a dead disk hangs.
func (i *Inspector) lookAt(volume string, s *subject) {
	select {
	case i.slots <- struct{}{}:
	case <-i.stopped:
		return
	}
	defer func() { <-i.slots }()
	state, err := i.config.Store.State(volume)
	// At once: what follows may hang in a copy whose mounts are known.
	i.recordState(s, state, err)
	i.record(volume, s, judge(i.config.Store, volume, state, err))
}

// recordState keeps the last state that was found out. A volume that has none is
// dropped by record.
func (i *Inspector) recordState(s *subject, state copies.State, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case err == nil:
		s.exists, s.held = state.Exists, state.Held
	case errors.Is(err, copies.ErrNotADirectory):
		s.exists = false
	}
}

func (i *Inspector) record(volume string, s *subject, conditions []Condition) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.isStopped() || i.subjects[volume] != s {
		return // The store is closed, or the copy was removed while it was looked at.
	}
	if !slices.Equal(s.conditions, conditions) {
		i.logTurn(volume, conditions)
	}
	s.conditions = conditions
	if !s.exists && !s.held && len(conditions) == 0 && !s.look.isAskedAgain() {
		delete(i.subjects, volume)
	}
}

func (i *Inspector) logTurn(volume string, conditions []Condition) {
	if len(conditions) == 0 {
		i.config.Log.Info("a copy is well again", "volume", volume)
	}
	for _, c := range conditions {
		i.config.Log.Warn("a copy is not well", "volume", volume, "reason", c.Reason, "error", c.Message)
	}
}

// tell logs what is wrong with the store, once for each fault.
func (i *Inspector) tell(what string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != i.faults[what] && !i.isStopped() {
		i.config.Log.Error("the store cannot be inspected", "what", what, "error", err)
	}
	i.faults[what] = text
}

func (i *Inspector) isStopped() bool { return isClosed(i.stopped) }

func (i *Inspector) isListed() bool { return isClosed(i.listed) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// await waits until done is closed, if it is a channel, or ctx ends.
func await(ctx context.Context, done <-chan struct{}) {
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}
