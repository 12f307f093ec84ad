package descent

import (
	"context"
	"time"
)

// stride is how many entries are handled between two pauses.
const stride = 2000

// Pace keeps the work on a tree of any size at half of one core at most: after
// every 2,000 entries it pauses for as long as they took. The zero Pace is
// ready; the first Step starts its clock.
type Pace struct {
	entries int
	since   time.Time
}

// Step counts one entry and pauses when it is time to. It returns ctx's error
// once ctx ends, also in the middle of a pause.
func (p *Pace) Step(ctx context.Context) error {
	if p.entries == 0 {
		p.since = time.Now()
	}
	p.entries++
	if p.entries <= stride {
		return ctx.Err()
	}
	p.entries = 0
	pause := time.NewTimer(time.Since(p.since))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C:
		return nil
	}
}
