package usage

import (
	"sync/atomic"
	"time"
)

// resting is what a pulse holds while its walk waits for nothing.
const resting = -1

// pulse tells a walk that gets on from one that waits for a disk that does not
// answer. Its methods may be called at the same time.
type pulse struct {
	start time.Time
	last  atomic.Int64 // Nanoseconds after start, or resting.
}

func (p *pulse) beat() { p.last.Store(int64(time.Since(p.start))) }

func (p *pulse) rest() { p.last.Store(resting) }

// silent is for how long the walk has waited for the disk.
func (p *pulse) silent() time.Duration {
	last := p.last.Load()
	if last == resting {
		return 0
	}
	return time.Since(p.start) - time.Duration(last)
}
