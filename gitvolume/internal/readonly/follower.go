package readonly

import (
	"context"
	"time"

	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/store"
)

const (
	// firstRetry and lastRetry bound the delay until a remote is asked again that failed.
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
	// mostAsked bounds for how long a remote may want to be left alone.
	mostAsked = time.Hour
)

// follower is the loop of a repository. All but what is said otherwise is Followers.mu's.
type follower struct {
	followers   *Followers
	repository  store.Repository
	cancel      context.CancelFunc
	wake        chan struct{}
	attachments map[*Attachment]bool
	views       map[scope]*view
	pulled      time.Time // When somebody's demand was met last.
}

// view is a repository as a scope is shown it.
type view struct {
	remote   Remote
	asked    time.Time     // When it was last.
	failures int           // How often in a row it failed.
	leave    time.Duration // For how long the remote wants to be left alone.
	urgent   bool          // It is to be asked at once.
	jitter   float64
}

// follower is the loop of the repository, which it begins if there is none. The caller
// holds mu.
func (f *Followers) follower(r store.Repository) *follower {
	if w := f.followers[r.Dir()]; w != nil {
		return w
	}
	ctx, cancel := context.WithCancel(f.ctx)
	w := &follower{
		followers: f, repository: r, cancel: cancel, wake: make(chan struct{}, 1),
		attachments: map[*Attachment]bool{}, views: map[scope]*view{},
	}
	f.followers[r.Dir()] = w
	f.work(func() { w.run(ctx) })
	return w
}

// run asks when it is due, until the last volume has left.
func (w *follower) run(ctx context.Context) {
	for {
		due, isDue := w.due()
		wait := time.Until(due)
		switch {
		case ctx.Err() != nil:
			return
		case isDue && wait <= 0:
			w.round(ctx, w.plan())
			continue
		}
		var timer <-chan time.Time
		if isDue {
			timer = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-timer:
		case <-w.wake:
		}
	}
}

// poke has the loop look again at what is due.
func (w *follower) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *follower) join(a *Attachment) {
	w.attachments[a] = true
	w.poke()
}

// leave ends the loop with its last volume.
func (w *follower) leave(a *Attachment) {
	delete(w.attachments, a)
	w.prune()
	if len(w.attachments) == 0 {
		w.cancel()
		delete(w.followers.followers, w.repository.Dir())
	}
}

// prune forgets the credentials that no volume has.
func (w *follower) prune() {
	for s := range w.views {
		used := false
		for a := range w.attachments {
			used = used || a.scope == s
		}
		if !used {
			delete(w.views, s)
		}
	}
}

// view is that of the scope, which is begun if there is none.
func (w *follower) view(s scope, connect func(Volume) Remote, v Volume) *view {
	if w.views[s] == nil {
		w.views[s] = &view{remote: connect(v)}
	}
	return w.views[s]
}

// asked notes that the scope was asked just now.
func (w *follower) asked(s scope, failed bool) {
	v := w.views[s]
	v.asked, v.urgent = time.Now(), false
	if v.failures++; !failed {
		v.failures, v.leave = 0, 0
	}
	if jitter := w.followers.settings.Jitter; jitter != nil {
		v.jitter = jitter()
	}
}

// assign has the volume followed as another scope.
func (w *follower) assign(a *Attachment, s scope, c *credential.Credential) {
	if a.scope != s {
		a.scope, a.failing = s, true // Until the new one was let in.
	}
	volume := a.volume
	volume.Credential = c
	v := w.view(s, w.followers.connect, volume)
	v.urgent = v.urgent || a.failing
	w.prune()
	w.poke()
}

// polls tells whether the volume is asked for without anybody's demand: what cannot change
// any more is so until it is known to be there.
func (a *Attachment) polls() bool {
	return a.attributes.Pull.Every > 0 && !a.isFixed() || a.stale || a.failing
}

// due is when the loop has something to do; false: not until somebody says so.
func (w *follower) due() (due time.Time, isDue bool) {
	w.followers.mu.Lock()
	defer w.followers.mu.Unlock()
	earliest := func(at time.Time) {
		if !isDue || at.Before(due) {
			due, isDue = at, true
		}
	}
	every := w.every()
	for a := range w.attachments {
		v := w.views[a.scope]
		switch {
		case a.checkout.finish:
			earliest(time.Time{})
		case v == nil: // It waits for its credential.
		case a.polls():
			earliest(v.due(every))
		}
		if v != nil && a.demanded {
			earliest(w.pulled.Add(w.followers.settings.DemandEvery))
		}
	}
	return due, isDue
}

// every is the shortest time between two polls that any volume asks for.
func (w *follower) every() time.Duration {
	shortest := time.Duration(0)
	for a := range w.attachments {
		if every := a.attributes.Pull.Every; every > 0 && (shortest == 0 || every < shortest) {
			shortest = every
		}
	}
	if shortest == 0 {
		return lastRetry // Only what is stale or failing is polled.
	}
	return shortest
}

// due is when the view is polled next.
func (v *view) due(every time.Duration) time.Time {
	switch {
	case v.urgent || v.asked.IsZero():
		return time.Time{}
	case v.failures > 0:
		delay := lastRetry
		if v.failures <= 5 {
			delay = min(firstRetry<<(v.failures-1), lastRetry)
		}
		delay += time.Duration(float64(delay/4) * v.jitter)
		return v.asked.Add(max(delay, min(v.leave, mostAsked)))
	}
	// Earlier and not later: the time is the longest that a volume asks for.
	return v.asked.Add(every - time.Duration(float64(every/10)*v.jitter))
}
