package usage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Run is the worker: it measures the volumes that are wanted, one at a time,
// until ctx ends. It is called once.
func (m *Meter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next, wait := m.next()
		if next != nil {
			m.measure(ctx, next)
			continue
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-m.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next gives the wanted volume that has been due for longest, those never
// measured first because somebody may wait for them; or, if none is due, how
// long until one is.
func (m *Meter) next() (*volume, time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var best *volume
	for _, v := range m.volumes {
		if v.wanted && (best == nil || v.due.Before(best.due)) {
			best = v
		}
	}
	if best == nil {
		return nil, time.Hour // Only a wake can bring work.
	}
	if wait := time.Until(best.due); wait > 0 {
		return nil, wait
	}
	return best, 0
}

func (m *Meter) measure(ctx context.Context, v *volume) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	m.mu.Lock()
	// Cleared before the walk: what changes during it is not in its result.
	v.wanted, v.stop = false, cancel
	m.mu.Unlock()

	start := time.Now()
	dir, err := m.open(v.name)
	gone := missing(err)
	var usage Usage
	if err == nil {
		usage, err = m.walk(ctx, dir)
		err = errors.Join(err, dir.Close())
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it took more than %s: %w", limit, err)
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	v.stop = nil
	switch {
	case m.volumes[v.name] != v:
		// Forgotten meanwhile, perhaps made anew: the result is of no use.
	case errors.Is(ctx.Err(), context.Canceled):
		// The process stops.
	case gone:
		m.forget(v, err)
	default:
		m.record(v, usage, err, time.Since(start))
	}
}

func (m *Meter) record(v *volume, usage Usage, err error, took time.Duration) {
	now := time.Now()
	v.due = now.Add(max(rest, share*took))
	if err == nil {
		v.usage, v.measured = usage, now
		v.attempted(nil)
		return
	}
	// Once for each fault, not for each time it is met again.
	if v.err == nil || v.err.Error() != err.Error() {
		m.log.Warn("cannot measure the volume, keeping the last value and trying again later",
			"volume", v.name, "error", err)
	}
	v.wanted = true
	v.attempted(err)
}
