package store

import (
	"context"
	"fmt"
	"sync"

	"liken.sh/csicommon/keyedmutex"
)

// guards say who works on a repository: many at a time, or one that removes something of
// it, and has to have it alone. Nothing is kept for a repository that nobody works on.
type guards struct {
	mu sync.Mutex
	of map[string]*guard
}

type guard struct {
	users int  // Who share it.
	alone bool // One has it alone.
	// waiting are who want it alone: nobody comes in before them.
	waiting int
	// gaveUp counts those who wanted it alone in vain: who waited for one of them comes in
	// before the next.
	gaveUp int
	// present are all who have it or wait for it.
	present int
	changed chan struct{} // Closed when any of this changes.
}

// share waits until nobody has the repository alone, or wants to and has not given up since.
func (g *guards) share(ctx context.Context, name string) (release func(), err error) {
	r := g.enter(name)
	g.mu.Lock()
	before := r.gaveUp
	g.mu.Unlock()
	ready := func() bool { return !r.alone && (r.waiting == 0 || r.gaveUp != before) }
	if err := g.wait(ctx, r, ready, func() { r.users++ }); err != nil {
		g.leave(name, r, func() {})
		return nil, err
	}
	return sync.OnceFunc(func() { g.leave(name, r, func() { r.users-- }) }), nil
}

// seize waits until nobody else has the repository.
func (g *guards) seize(ctx context.Context, name string) (release func(), err error) {
	r := g.enter(name)
	g.mu.Lock()
	r.waiting++
	g.mu.Unlock()
	err = g.wait(ctx, r, func() bool { return !r.alone && r.users == 0 }, func() { r.waiting, r.alone = r.waiting-1, true })
	if err != nil {
		g.leave(name, r, func() { r.waiting, r.gaveUp = r.waiting-1, r.gaveUp+1 })
		return nil, err
	}
	return sync.OnceFunc(func() { g.leave(name, r, func() { r.alone = false }) }), nil
}

// trySeize takes the repository if nobody else has it or wants it.
func (g *guards) trySeize(name string) (release func(), ok bool) {
	r := g.enter(name)
	g.mu.Lock()
	ok = r.present == 1
	r.alone = r.alone || ok
	g.mu.Unlock()
	if !ok {
		g.leave(name, r, func() {})
		return nil, false
	}
	return sync.OnceFunc(func() { g.leave(name, r, func() { r.alone = false }) }), true
}

func (g *guards) wait(ctx context.Context, r *guard, ready func() bool, take func()) error {
	for {
		g.mu.Lock()
		if ready() {
			take()
			g.mu.Unlock()
			return nil
		}
		changed := r.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the repository: %w (%w)", keyedmutex.ErrBusy, context.Cause(ctx))
		}
	}
}

func (g *guards) enter(name string) *guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = make(map[string]*guard)
	}
	r := g.of[name]
	if r == nil {
		r = &guard{changed: make(chan struct{})}
		g.of[name] = r
	}
	r.present++
	return r
}

// leave makes the change and wakes who waits.
func (g *guards) leave(name string, r *guard, change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	if r.present--; r.present == 0 {
		delete(g.of, name)
		return
	}
	close(r.changed)
	r.changed = make(chan struct{})
}
