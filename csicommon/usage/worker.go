package usage

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Run measures the volumes that are wanted, one at a time, until ctx ends. It is
// called once. A walk that hangs in a disk that does not answer is left alone
// for as long as it does, even when Run returns; such a volume keeps its last
// value, and the others are measured.
func (m *Meter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		next, wait := m.next()
		if next != nil {
			m.attend(ctx, m.begin(ctx, next))
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
	if len(m.hanging) < hangable {
		for _, v := range m.volumes {
			if v.wanted && !m.hanging[v.name] && (best == nil || v.due.Before(best.due)) {
				best = v
			}
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

// attempt is one walk of a volume, in a goroutine of its own.
type attempt struct {
	volume *volume
	pulse  pulse
	start  time.Time
	stop   context.CancelCauseFunc
	done   chan struct{}
	gone   bool // The volume's directory is not there.
	over   bool // Guarded by Meter.mu, and so is hung.
	hung   bool // It was left to itself, whatever else ended it before or after.
}

func (m *Meter) begin(ctx context.Context, v *volume) *attempt {
	ctx, stop := context.WithCancelCause(ctx)
	a := &attempt{volume: v, start: time.Now(), stop: stop, done: make(chan struct{})}
	a.pulse.start = a.start
	m.mu.Lock()
	// Cleared before the walk: what changes during it is not in its result.
	v.wanted, v.stop = false, stop
	m.mu.Unlock()
	go func() {
		defer close(a.done)
		defer stop(nil)
		usage, err := m.measure(ctx, a)
		m.finish(ctx, a, usage, err)
	}()
	return a
}

// attend waits for the attempt to end or to hang.
func (m *Meter) attend(ctx context.Context, a *attempt) {
	ticker := time.NewTicker(hungAfter / 2)
	defer ticker.Stop()
	for {
		select {
		case <-a.done:
			return
		case <-ticker.C:
			if a.pulse.silent() >= hungAfter && m.abandon(a) {
				return
			}
		case <-ctx.Done():
			select {
			case <-a.done:
			case <-time.After(parting):
			}
			return
		}
	}
}

// abandon leaves the attempt to itself, which ends it as soon as the disk has
// answered; false when it is over.
func (m *Meter) abandon(a *attempt) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.over {
		return false
	}
	m.hanging[a.volume.name], a.hung = true, true
	a.stop(errHung)
	if m.volumes[a.volume.name] == a.volume {
		m.failed(a.volume, errHung)
	}
	if len(m.hanging) == hangable {
		m.log.Warn("too many disks do not answer, measuring nothing until one does", "volumes", hangable)
	}
	return true
}

func (m *Meter) measure(ctx context.Context, a *attempt) (Usage, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	dir, err := m.open(a.volume.name)
	if err != nil {
		a.gone = missing(err)
		return Usage{}, err
	}
	usage, err := m.walk(ctx, dir, &a.pulse)
	err = errors.Join(err, dir.Close())
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it took more than %s: %w", limit, err)
	}
	return usage, err
}

// finish records what came of the attempt.
func (m *Meter) finish(ctx context.Context, a *attempt, usage Usage, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := a.volume
	v.stop, a.over = nil, true
	if a.hung {
		delete(m.hanging, v.name)
		m.poke()
	}
	switch {
	case m.volumes[v.name] != v:
		// Forgotten meanwhile, perhaps made anew: the result is of no use.
	case a.hung:
		v.due = time.Now().Add(rest)
	case ctx.Err() != nil:
		// The process stops.
	case a.gone:
		m.forget(v, err)
	default:
		m.record(v, usage, err, time.Since(a.start))
	}
}

func (m *Meter) record(v *volume, usage Usage, err error, took time.Duration) {
	now := time.Now()
	v.due = now.Add(max(rest, share*took))
	if err != nil {
		m.failed(v, err)
		return
	}
	if usage.AtLeast && !v.deep {
		m.log.Warn("the volume is too deep to be measured as a whole, it uses more than is told",
			"volume", v.name, "levels", deepest)
	}
	v.usage, v.measured, v.deep = usage, now, usage.AtLeast
	v.attempted(nil)
}

// failed keeps the last value and has the volume measured again.
func (m *Meter) failed(v *volume, err error) {
	// Once for each fault, not for each time it is met again.
	if v.err == nil || v.err.Error() != err.Error() {
		m.log.Warn("cannot measure the volume, keeping the last value and trying again later",
			"volume", v.name, "error", err)
	}
	v.wanted = true
	v.attempted(err)
}
