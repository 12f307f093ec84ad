package webhook

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// again is after how long what could not be marked is tried again, and tries how often
	// in all: a volume that nobody may annotate must not be tried for ever.
	again = 30 * time.Second
	tries = 10
)

// backlog is what has to be marked because a push for it may have been lost. The zero value
// is empty.
type backlog struct {
	mu    sync.Mutex
	isAll bool
	some  map[string]target // By the volume: of many pushes to one it is told once.
}

// addAll adds every volume: it is not known what was pushed.
func (b *backlog) addAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isAll, b.some = true, nil
}

func (b *backlog) add(some []target) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isAll {
		return
	}
	if b.some == nil {
		b.some = map[string]target{}
	}
	for _, t := range some {
		b.some[t.volume] = t
	}
}

// take empties it.
func (b *backlog) take(all func() []target) []target {
	b.mu.Lock()
	isAll, some := b.isAll, b.some
	b.isAll, b.some = false, nil
	b.mu.Unlock()
	if isAll {
		return all()
	}
	return slices.Collect(maps.Values(some))
}

// wake has the backlog be worked off.
func (w *Webhook) wake() {
	select {
	case w.catchUp <- struct{}{}:
	default:
	}
}

// keepCatchingUp works the backlog off, whenever the cluster can be read, until ctx ends.
func (w *Webhook) keepCatchingUp(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.catchUp:
		}
		if w.catalogue.Unread() == nil {
			w.markLost(ctx, w.backlog.take(w.targets.all))
		}
	}
}

// markLost marks volumes of which a push may have been lost. The nodes pull each repository
// once for it.
func (w *Webhook) markLost(ctx context.Context, lost []target) {
	if len(lost) == 0 {
		return
	}
	left := lost
	for try := 1; ; try++ {
		left = w.markEach(ctx, left)
		switch {
		case ctx.Err() != nil:
			return // The next process marks all.
		case len(left) == 0:
			w.settings.Log.Info("volumes pull since a push may have been lost", "volumes", len(lost))
			return
		case w.catalogue.Unread() != nil:
			w.backlog.add(left) // Until the cluster is read again.
			return
		case try == tries:
			w.settings.Log.Error("volumes cannot be marked, they pull when they do by themselves", "volumes", len(left))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// markEach marks one volume after the other, so that requests are served meanwhile, and
// returns those that it could not.
func (w *Webhook) markEach(ctx context.Context, all []target) (left []target) {
	for i, t := range all {
		if w.catalogue.Unread() != nil {
			return append(left, all[i:]...)
		}
		asked := w.marks.ask(t)
		select {
		case <-ctx.Done():
			return append(left, all[i:]...)
		case <-asked.done:
		}
		if asked.err != nil {
			w.settings.Log.Warn("a volume cannot be marked, trying again", "volume", t.volume, "error", asked.err)
			left = append(left, t)
		}
	}
	return left
}
