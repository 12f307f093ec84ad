package watch

import "time"

const (
	// grace is how long an event may be on its way to this package.
	grace = 2 * time.Second
	// mostUnannounced is how many changes without an event are kept by name, for their
	// event to come.
	mostUnannounced = 64
)

// State says whether the events of a tree can be relied on.
type State struct {
	// Degraded is true while changes may be made that nothing announces. The owner has
	// to scan then, and each scan is an attempt to repair it.
	Degraded bool
	// Reason says why, in the same words each time; "" when it is not degraded.
	Reason string
	// Missing is how many directories had no watch when they were last checked.
	Missing int
}

// State is of now: a change that Found told of makes it degraded two seconds later,
// if no event came.
func (w *Watch) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := State{Missing: w.missing, Reason: w.reason(time.Now())}
	state.Degraded = state.Reason != ""
	return state
}

// reason is why the watch is degraded. w.mu is held.
func (w *Watch) reason(now time.Time) string {
	switch {
	case w.tooMany:
		return "the tree has too many directories to be watched"
	case w.worn:
		return "too many directories came and went: watching the tree would take too much memory"
	case w.missing > 0:
		return "directories are not watched: a limit of inotify is reached, or some cannot be read"
	case w.putOff:
		return "directories were moved, and it is too soon to set up their watches again"
	case w.lostSince:
		return "events came faster than they could be taken, and some may be lost"
	case w.unheard(now):
		return "a scan found a change that no event announced"
	}
	return ""
}

func (w *Watch) unheard(now time.Time) bool {
	for _, found := range w.unannounced {
		if now.Sub(found) >= grace {
			return true
		}
	}
	return !w.unnamed.IsZero() && now.Sub(w.unnamed) >= grace
}

// Found tells that a look at the hint found a change of path that the owner did not
// know of yet. The watch is degraded when no event announced it, nor does so within
// two seconds.
func (w *Watch) Found(h Hint, path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h.announced.covers(path) || w.pending.covers(path) {
		return
	}
	w.misses++
	// The first time counts: a path that is found in each scan stays a reason.
	if _, known := w.unannounced[path]; known {
		return
	}
	if len(w.unannounced) < mostUnannounced {
		w.unannounced[path] = time.Now()
	} else if w.unnamed.IsZero() {
		w.unnamed = time.Now()
	}
}

// clear takes back what a look at everything has made good. w.mu is held.
func (w *Watch) clear(h Hint) {
	if h.losses == w.losses {
		w.lostSince = false
	}
	if h.misses == w.misses {
		clear(w.unannounced)
		w.unnamed = time.Time{}
	}
}
