package remote

import (
	"context"
	"sync"
)

// collections are the collections of garbage that run or are about to. None does in a
// repository that somebody waits to have fetched.
type collections struct {
	mu sync.Mutex
	// awaited is how many wait for each repository, and of whom which collection is.
	awaited map[string]int
	of      map[*collection]bool
}

type collection struct {
	dir     string
	giveWay context.CancelCauseFunc
}

// enter is the context of a collection, which lasts until leave or until it has to give way.
func (c *collections) enter(ctx context.Context, dir string) (within context.Context, leave func()) {
	within, giveWay := context.WithCancelCause(ctx)
	one := &collection{dir: dir, giveWay: giveWay}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[*collection]bool{}
	}
	c.of[one] = true
	if c.awaited[dir] > 0 {
		giveWay(ErrGaveWay)
	}
	return within, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.of, one)
		giveWay(nil)
	}
}

// await has collections in the repository give way until leave.
func (c *collections) await(dir string) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.awaited == nil {
		c.awaited = map[string]int{}
	}
	c.awaited[dir]++
	for one := range c.of {
		if one.dir == dir {
			one.giveWay(ErrGaveWay)
		}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.awaited[dir]--; c.awaited[dir] == 0 {
			delete(c.awaited, dir)
		}
	}
}

// lockBeforeGC has the repository for a run alone. A collection of its garbage gives way when
// somebody waits for the run.
func (c *Command) lockBeforeGC(ctx context.Context, dir string, urgent <-chan struct{}) (unlock func(), err error) {
	locked, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-urgent:
			defer c.collections.await(dir)()
			<-locked
		case <-locked:
		}
	}()
	unlock, err = c.repositories.Lock(ctx, dir)
	close(locked)
	<-ended
	return unlock, err
}
