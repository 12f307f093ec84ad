package report

import (
	"fmt"
	"time"

	"liken.sh/csicommon/quote"
)

// Figures is what is measured of a writeable volume. The zero value is a volume that is
// not armed and has nothing to commit or push.
type Figures struct {
	// Armed tells that the volume is committed at all.
	Armed bool
	// Pending is how many changed paths are not committed yet, PendingPath one of them.
	Pending     int
	PendingPath string
	// Unpushed is how many commits the remote does not have, the oldest of them made at
	// UnpushedSince; zero: not known.
	Unpushed      int
	UnpushedSince time.Time
	// MaxLatency is the policy's: a commit that is unpushed for longer is a fault; 0:
	// none is.
	MaxLatency time.Duration
	// LastPush is when a push arrived last; zero: not known.
	LastPush time.Time
}

// Update changes the figures. What change is given is its own until it returns, and it
// must not call the volume.
func (v *Volume) Update(change func(*Figures)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(&v.figures)
	v.followPending()
	v.judge()
}

// followPending has the fault of pending paths begin and end. Its Event names the path
// that was given when it began: naming each later one would be an Event for each write.
func (v *Volume) followPending() {
	_, told := v.faults[pathsPending]
	waits := !v.figures.Armed && v.figures.Pending > 0
	switch {
	case waits && !told:
		v.raise(pathsPending, fmt.Sprintf("changes are not committed, because the volume is not armed; one is at %s",
			quote.Words(v.figures.PendingPath, pathLength)))
	case !waits && told:
		v.clear(pathsPending)
	}
}

// overdue tells that the oldest unpushed commit is older than the policy allows. It is
// found out when somebody asks: nothing happens at that moment that would say so.
func (f Figures) overdue(now time.Time) bool {
	isKnown := f.Unpushed > 0 && f.MaxLatency > 0 && !f.UnpushedSince.IsZero()
	return isKnown && now.Sub(f.UnpushedSince) > f.MaxLatency
}
