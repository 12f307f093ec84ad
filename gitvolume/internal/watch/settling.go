package watch

import "time"

// settle is how long notify is given to see to a directory that was made or removed.
// It does that some time after it told of it, and in no order: the removal of a
// directory may take the watch of the next one of that name.
const settle = time.Second

// settling has each subtree looked at once more, between one and two settles after
// the event that announced it. Its timer runs only while there are such subtrees.
type settling struct {
	timer      *time.Timer
	young, old pending
}

// addSettling has path looked at once more. w.mu is held.
func (w *Watch) addSettling(path string) {
	w.settling.young.addSubtree(path)
	if w.settling.timer == nil {
		w.settling.timer = time.AfterFunc(settle, w.settled)
	}
}

func (w *Watch) settled() {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.settling
	if s.timer == nil {
		return
	}
	if !s.old.empty() {
		w.pending.merge(s.old)
		w.signal()
	}
	s.old, s.young = s.young, pending{}
	s.timer = nil
	if !s.old.empty() {
		s.timer = time.AfterFunc(settle, w.settled)
	}
}

// endSettling stops the timer for good.
func (w *Watch) endSettling() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settling.timer != nil {
		w.settling.timer.Stop()
	}
	w.settling = settling{}
}
