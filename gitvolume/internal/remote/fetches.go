package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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
	// Request is what to fetch. Its Remote.Session, Progress and Urgent are set by Fetches.
	Request Request
	// Credential is as whom; nil as nobody.
	Credential Credential
	// Urgency is Background unless somebody waits for it.
	Urgency Urgency
	// Hold has the repository be there, and stay in its place while it is fetched, which begins
	// when there is a slot; nil: who wants the fetch sees to that.
	Hold func(ctx context.Context) (release func(), err error)
	// Since is when it was first wanted: what a fetch brought that began after that is not
	// fetched again, if it is known still. Zero: now.
	Since time.Time
	// Observe is told of the fetch that is made, by one of those who wanted it; nil: nobody is.
	Observe func(took time.Duration, err error)
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
// at a time. What waits meanwhile is fetched together, if it may share what is brought; what
// somebody waits for goes first.
type Fetches struct {
	settings FetchesSettings
	ctx      context.Context // Fetches outlive the calls that ask for them.
	stop     context.CancelFunc
	workers  sync.WaitGroup

	mu      sync.Mutex
	queues  map[string]*queue // By the repository's directory.
	brought brought
}

// NewFetches has nothing to do yet. Close ends it.
func NewFetches(settings FetchesSettings) *Fetches {
	f := &Fetches{settings: settings, queues: map[string]*queue{}, brought: brought{}}
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

// Fetch waits for a fetch of the demand's refs, with the same credential, that runs or
// waits already, or else for one that it begins. When ctx has a deadline and 10 s are left
// of it, or a third of what there was, the error is ErrInProgress and tells how far the fetch is; the fetch goes on.
// With a caller whose turn is over, by the cause of ctx, it ends, unless others want it.
func (f *Fetches) Fetch(ctx context.Context, demand Demand) (map[string]Fetched, error) {
	return f.await(ctx, f.join(demand, false))
}

// FetchAnew is Fetch for somebody who knows that the remote has changed just now: a fetch
// that runs already may have looked before that. A burst of calls shares one fetch.
func (f *Fetches) FetchAnew(ctx context.Context, demand Demand) (map[string]Fetched, error) {
	return f.await(ctx, f.join(demand, true))
}

// join finds a fetch that fits or begins one.
func (f *Fetches) join(demand Demand, anew bool) *fetch {
	joined := &fetch{demand: demand, scope: scopeOf(demand), done: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, found := f.brought.since(joined.scope, demand, time.Now()); found && !anew {
		joined.result = known
		close(joined.done)
		return joined
	}
	q := f.queues[joined.scope.dir]
	if q == nil {
		q = &queue{urgent: make(chan struct{})}
		f.queues[joined.scope.dir] = q
	}
	other := q.find(joined, anew)
	if other == nil {
		other = joined
		q.waiting = append(q.waiting, joined)
	}
	if demand.Urgency == Foreground {
		other.wanted++
		q.hurry(other)
	}
	if !q.served && f.ctx.Err() == nil {
		q.served = true
		f.workers.Go(func() { f.serve(q, joined.scope.dir) })
	}
	return other
}

// serve does the repository's fetches until there are none.
func (f *Fetches) serve(q *queue, dir string) {
	for {
		f.mu.Lock()
		if len(q.waiting) == 0 {
			delete(f.queues, dir)
			f.mu.Unlock()
			return
		}
		q.rest()
		url, urgent := q.waiting[0].demand.Request.Remote.URL, q.urgent
		f.mu.Unlock()
		within, release, err := f.settings.Slots.takeUnless(f.ctx, url, Asking, urgent)
		if err != nil {
			f.mu.Lock()
			batch := q.begin()
			f.mu.Unlock()
			f.end(q, batch, nil, fmt.Errorf("wait for a slot to fetch in: %w", err))
			continue
		}
		ctx, batch, done := f.begin(within, q, release)
		err = f.together(ctx, q, batch)
		done()
		release(err)
	}
}

// begin begins a batch, and gives the context of its fetch. When its slot is to be another's,
// the fetch goes on without if somebody waits for it, and is called off if nobody does.
func (f *Fetches) begin(within context.Context, q *queue, release func(error)) (ctx context.Context, batch []*fetch, done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	batch = q.begin()
	ctx, cancel := context.WithCancelCause(f.ctx)
	q.callOff = func() {
		q.isOver = true
		cancel(ErrTurnOver)
	}
	q.hasSlot = within != f.ctx
	q.endUnwanted()
	stop := context.AfterFunc(within, func() {
		f.mu.Lock()
		if ctx.Err() == nil && errors.Is(context.Cause(within), ErrTurnOver) {
			q.hasSlot = false
			q.endUnwanted()
		}
		isCalledOff := ctx.Err() != nil
		f.mu.Unlock()
		if !isCalledOff {
			release(nil)
		}
	})
	return ctx, batch, func() {
		stop()
		cancel(nil)
	}
}

// disown takes back that somebody wants a fetch, whose turn is over.
func (f *Fetches) disown(one *fetch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.wanted--
	if q := f.queues[one.scope.dir]; q != nil && slices.Contains(q.running, one) {
		q.endUnwanted()
	}
}

// together does a batch in one fetch. Where that fails of what one of them wants, each is
// fetched by itself: nobody is to be kept from his refs by another's.
func (f *Fetches) together(ctx context.Context, q *queue, batch []*fetch) error {
	result, err := f.work(ctx, q, batch)
	if len(batch) == 1 || !isOfARef(err) {
		f.end(q, batch, result, err)
		return err
	}
	for _, one := range batch {
		alone := []*fetch{one}
		result, err = f.work(ctx, q, alone)
		f.end(q, alone, result, err)
	}
	return err
}

// isOfARef tells of a failure that may be of one ref and not of the remote.
func isOfARef(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || IsRemote(err) && !errors.Is(err, ErrNoRoom) {
		return false
	}
	var failure *Failure
	return !errors.As(err, &failure) || failure.HTTPStatus < 400
}

// end tells those who wait how it ended.
func (f *Fetches) end(q *queue, batch []*fetch, result map[string]Fetched, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range batch {
		one.result, one.err = one.demand.of(result), err
		q.running = slices.DeleteFunc(q.running, func(other *fetch) bool { return other == one })
		close(one.done)
	}
}

// work is one fetch of all that the batch wants, which may share it.
func (f *Fetches) work(ctx context.Context, q *queue, batch []*fetch) (fetched map[string]Fetched, err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("fetch: %w", endReason(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, f.settings.Timeout)
	defer cancel()
	if i := slices.IndexFunc(batch, func(one *fetch) bool { return one.demand.Hold != nil }); i >= 0 {
		release, err := batch[i].demand.Hold(ctx)
		if err != nil {
			return nil, fmt.Errorf("fetch: %w", err)
		}
		defer release()
	}
	began := time.Now()
	first := batch[0].demand
	request := first.Request
	request.Refs = refsOf(batch)
	f.mu.Lock()
	request.Urgent = q.urgent
	f.mu.Unlock()
	request.Progress = func(p Progress) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, one := range batch {
			one.progress = p
		}
	}
	defer func() {
		if first.Observe != nil && f.ctx.Err() == nil {
			first.Observe(time.Since(began), err)
		}
	}()
	if first.Credential != nil {
		session, closing, err := first.Credential.Open()
		if err != nil {
			return nil, fmt.Errorf("serve the credential: %w", err)
		}
		defer closing()
		request.Remote.Session = session
	}
	fetched, err = f.settings.Fetcher.Fetch(ctx, request)
	if err == nil {
		f.mu.Lock()
		f.brought.note(batch[0].scope, request, fetched, began)
		f.mu.Unlock()
	}
	return fetched, err
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
		if errors.Is(context.Cause(ctx), ErrTurnOver) {
			f.disown(joined)
		}
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
