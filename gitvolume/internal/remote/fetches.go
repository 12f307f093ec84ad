package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// ErrInProgress says that the fetch goes on and the caller's time is nearly up. CSI
// calls it Aborted: the retry joins.
var ErrInProgress = errors.New("the fetch is still running")

// answerBefore is how long before its deadline a waiting call is answered, so that the
// answer still reaches who asked; of a call that has less than three times that, as the
// last push of a volume that stops, a third is kept for it.
const answerBefore = 10 * time.Second

// Fetcher is what Fetches has do the work: a Command.
type Fetcher interface {
	Fetch(ctx context.Context, request Request) (map[string]Fetched, error)
}

// Credential is as whom a fetch is done, and whom it trusts.
type Credential interface {
	// Identity tells credentials apart without showing them, with the host keys and the
	// authorities that they trust: who trusts others must not be given what a fetch brought
	// from a server that is none of his.
	Identity() [32]byte
	// Open serves the credential to one fetch, until close is called.
	Open() (session Session, closing func(), err error)
}

// Demand is a fetch that somebody wants.
type Demand struct {
	// Request is what to fetch. Its Remote.Session and Progress are set by Fetches.
	Request Request
	// Credential is as whom; nil as nobody.
	Credential Credential
	// Urgency is Background unless somebody waits for it.
	Urgency Urgency
}

// Urgency says whether a fetch has to wait for one of the slots of background work.
type Urgency int

// Foreground work starts at once. Background work that a foreground call joins does too.
const (
	Background Urgency = iota
	Foreground
)

// FetchesSettings are what Fetches needs.
type FetchesSettings struct {
	Fetcher Fetcher
	Slots   *Slots
	// Timeout bounds one fetch as a whole.
	Timeout time.Duration
}

// Fetches makes a fetch belong to the repository and not to the call that asked for it:
// calls join one that runs, and it goes on when they leave. One repository has one fetch
// at a time; what does not fit that waits in the order in which it came.
type Fetches struct {
	settings FetchesSettings
	ctx      context.Context // Fetches outlive the calls that ask for them.
	stop     context.CancelFunc
	workers  sync.WaitGroup

	mu sync.Mutex
	// queues holds for each repository what runs, first, and what waits.
	queues map[string][]*fetch
}

// NewFetches has nothing to do yet. Close ends it.
func NewFetches(settings FetchesSettings) *Fetches {
	f := &Fetches{settings: settings, queues: map[string][]*fetch{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Close ends all fetches and waits until their processes are gone.
func (f *Fetches) Close() {
	f.mu.Lock()
	f.stop() // No other begins from here on.
	f.mu.Unlock()
	f.workers.Wait()
}

// fetch is one that runs or waits for its turn.
type fetch struct {
	demand   Demand
	identity [32]byte
	running  bool
	done     chan struct{}
	urgent   chan struct{} // Closed when somebody waits for it.
	result   map[string]Fetched
	err      error
	progress Progress
}

// Fetch waits for a fetch of the demand's refs, with the same credential, that runs or
// waits already, or else for one that it begins. When ctx has a deadline and 10 s are left
// of it, or a third of what there was, the error is ErrInProgress and tells how far the fetch is; the fetch goes on.
func (f *Fetches) Fetch(ctx context.Context, demand Demand) (map[string]Fetched, error) {
	return f.await(ctx, f.join(demand, func(*fetch) bool { return true }))
}

// FetchAnew is Fetch for somebody who knows that the remote has changed just now: a fetch
// that runs already may have looked before that. A burst of calls shares one fetch.
func (f *Fetches) FetchAnew(ctx context.Context, demand Demand) (map[string]Fetched, error) {
	return f.await(ctx, f.join(demand, func(other *fetch) bool { return !other.running }))
}

// join finds a fetch that fits or begins one.
func (f *Fetches) join(demand Demand, fits func(*fetch) bool) *fetch {
	var identity [32]byte
	if demand.Credential != nil {
		identity = demand.Credential.Identity()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	dir := demand.Request.Dir
	for _, other := range f.queues[dir] {
		if fits(other) && other.identity == identity && other.demand.covers(demand) {
			f.hurry(demand, other)
			return other
		}
	}
	joined := &fetch{demand: demand, identity: identity, done: make(chan struct{}), urgent: make(chan struct{})}
	f.queues[dir] = append(f.queues[dir], joined)
	f.hurry(demand, joined)
	if len(f.queues[dir]) == 1 && f.ctx.Err() == nil {
		f.workers.Go(func() { f.serve(dir) })
	}
	return joined
}

// covers tells whether the other demand is met when this one is.
func (d Demand) covers(other Demand) bool {
	// Who may not reach every address must not be given what another's fetch brought
	// from one of them.
	if d.Request.Depth != other.Request.Depth || d.Request.Remote.URL != other.Request.Remote.URL ||
		(d.Request.Remote.Permit == nil) != (other.Request.Remote.Permit == nil) ||
		d.Request.Remote.Limits != other.Request.Remote.Limits {
		return false
	}
	for from, to := range other.Request.Refs {
		if d.Request.Refs[from] != to {
			return false
		}
	}
	return true
}

// hurry has the fetch that a foreground demand waits for need no slot, and those before
// it in the repository's queue neither, since it waits for them too. Fetches.mu is held.
func (f *Fetches) hurry(demand Demand, last *fetch) {
	if demand.Urgency != Foreground {
		return
	}
	for _, waiting := range f.queues[demand.Request.Dir] {
		waiting.hurry()
		if waiting == last {
			return
		}
	}
}

// hurry has the fetch wait for no slot. Fetches.mu is held.
func (j *fetch) hurry() {
	select {
	case <-j.urgent:
	default:
		close(j.urgent)
	}
}

// serve does the repository's fetches until there are none.
func (f *Fetches) serve(dir string) {
	for {
		f.mu.Lock()
		if len(f.queues[dir]) == 0 {
			delete(f.queues, dir)
			f.mu.Unlock()
			return
		}
		next := f.queues[dir][0]
		f.mu.Unlock()
		result, err := f.work(next)
		f.mu.Lock()
		next.result, next.err = result, err
		close(next.done)
		f.queues[dir] = f.queues[dir][1:]
		f.mu.Unlock()
	}
}

func (f *Fetches) work(next *fetch) (fetched map[string]Fetched, err error) {
	if f.ctx.Err() != nil {
		return nil, fmt.Errorf("fetch: %w", endReason(f.ctx))
	}
	release, err := f.settings.Slots.takeUnless(f.ctx, next.demand.Request.Remote.URL, next.urgent)
	if err != nil {
		return nil, fmt.Errorf("wait for a slot to fetch in: %w", err)
	}
	defer func() { release(err) }()
	f.mu.Lock()
	next.running = true
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(f.ctx, f.settings.Timeout)
	defer cancel()
	request := next.demand.Request
	request.Progress = func(p Progress) {
		f.mu.Lock()
		defer f.mu.Unlock()
		next.progress = p
	}
	if next.demand.Credential != nil {
		session, closing, err := next.demand.Credential.Open()
		if err != nil {
			return nil, fmt.Errorf("serve the credential: %w", err)
		}
		defer closing()
		request.Remote.Session = session
	}
	return f.settings.Fetcher.Fetch(ctx, request)
}

// Patience is how much of the time a call may wait: what it needs for its answer to arrive
// before its deadline is not waited away.
func Patience(ctx context.Context, most time.Duration) time.Duration {
	deadline, has := ctx.Deadline()
	if !has {
		return most
	}
	left := time.Until(deadline)
	return min(most, left-min(answerBefore, left/3))
}

// await waits for the fetch as long as the caller can.
func (f *Fetches) await(ctx context.Context, joined *fetch) (map[string]Fetched, error) {
	var late <-chan time.Time
	if _, has := ctx.Deadline(); has {
		timer := time.NewTimer(Patience(ctx, math.MaxInt64))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-joined.done:
		return joined.result, joined.err
	default:
	}
	select {
	case <-joined.done:
		return joined.result, joined.err
	case <-f.ctx.Done():
		return nil, fmt.Errorf("wait for the fetch: %w", endReason(f.ctx))
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the fetch: %w", endReason(ctx))
	case <-late:
		f.mu.Lock()
		defer f.mu.Unlock()
		if !joined.running {
			return nil, fmt.Errorf("%w: it waits for others", ErrInProgress)
		}
		return nil, fmt.Errorf("%w: %s", ErrInProgress, joined.progress)
	}
}
