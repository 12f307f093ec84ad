// Package keyedmutex gives each volume handle a lock of its own: two calls for
// one handle never run together, and calls for different handles never wait for
// each other.
//
// A waiter gives up when its context ends, because the kubelet's deadline is the
// only thing that bounds a call stuck behind a dead disk. The package must never
// keep anything for a key that nobody holds or waits for.
package keyedmutex

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrBusy is returned when the context ended before the lock was free. CSI calls
// it Aborted: another operation is pending for the volume.
var ErrBusy = errors.New("another operation for it is still running")

// Mutex is a set of locks, one a key. The zero value is ready to use.
type Mutex struct {
	mu    sync.Mutex
	locks map[string]*lock
}

// lock is one key's: a token in the channel means free. users counts the holder
// and the waiters; at zero the entry goes.
type lock struct {
	free  chan struct{}
	users int
}

// Lock waits for key's lock and returns the function that releases it, to be
// called once. When ctx ends first the error wraps ErrBusy and the context's own
// error, and nothing is held.
func (m *Mutex) Lock(ctx context.Context, key string) (unlock func(), err error) {
	l := m.enter(key)
	select {
	case <-l.free:
		return func() { l.free <- struct{}{}; m.leave(key, l) }, nil
	default:
	}
	select {
	case <-l.free:
		return func() { l.free <- struct{}{}; m.leave(key, l) }, nil
	case <-ctx.Done():
		m.leave(key, l)
		return nil, fmt.Errorf("lock %q: %w (%w)", key, ErrBusy, context.Cause(ctx))
	}
}

func (m *Mutex) enter(key string) *lock {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.locks[key]
	if l == nil {
		l = &lock{free: make(chan struct{}, 1)}
		l.free <- struct{}{}
		if m.locks == nil {
			m.locks = make(map[string]*lock)
		}
		m.locks[key] = l
	}
	l.users++
	return l
}

func (m *Mutex) leave(key string, l *lock) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(m.locks, key)
	}
}
