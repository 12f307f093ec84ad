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

// lost is what is still to be marked, by the volume, and how often that was tried.
type lost map[string]struct {
	target target
	tries  int
}

// keepCatchingUp works the backlog off, whenever the cluster can be read, until ctx ends.
func (w *Webhook) keepCatchingUp(ctx context.Context) {
	left, isWaiting := lost{}, false
	retry := time.NewTimer(again)
	retry.Stop()
	defer retry.Stop()
	for {
		isDue := false
		select {
		case <-ctx.Done():
			return // The next process marks all.
		case <-w.catchUp:
		case <-retry.C:
			isDue, isWaiting = true, false
		}
		if w.catalogue.Unread() != nil {
			w.wait(left)
			continue
		}
		// What comes anew is not held up by what failed before.
		all := w.backlog.take(w.targets.all)
		for _, t := range all {
			delete(left, t.volume)
		}
		if isDue {
			for _, l := range left {
				all = append(all, l.target)
			}
		}
		w.markLost(ctx, all, left)
		if len(left) > 0 && !isWaiting {
			isWaiting = true
			retry.Reset(again)
		}
	}
}

// wait has what is left wait until the cluster is read again.
func (w *Webhook) wait(left lost) {
	for _, l := range left {
		w.backlog.add([]target{l.target})
	}
	clear(left)
	if w.catalogue.Unread() == nil {
		w.wake() // It is read by now, and nobody else would.
	}
}

// markLost marks volumes of which a push may have been lost, and keeps those that it could
// not. The nodes pull each repository once for it.
func (w *Webhook) markLost(ctx context.Context, all []target, left lost) {
	failed := lost{}
	for _, t := range w.markEach(ctx, all) {
		had := left[t.volume]
		had.target, had.tries = t, had.tries+1
		failed[t.volume] = had
	}
	if ctx.Err() != nil {
		return
	}
	for _, t := range all {
		delete(left, t.volume)
	}
	given := 0
	for volume, l := range failed {
		if l.tries < tries {
			left[volume] = l
		} else {
			given++
		}
	}
	if marked := len(all) - len(failed); marked > 0 {
		w.settings.Log.Info("volumes pull since a push may have been lost", "volumes", marked)
	}
	if given > 0 {
		w.settings.Log.Error("volumes cannot be marked, they pull when they do by themselves", "volumes", given)
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
