package event

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// window is how long after the last occurrence a repeat still counts up.
	window = 10 * time.Minute
	// waitingMost bounds the distinct Events that wait for the API server.
	waitingMost = 1000
	// callTimeout bounds each call of the API server.
	callTimeout = 10 * time.Second
	// drainTime is how long Run goes on after its context ended.
	drainTime = 2 * time.Second
)

// Config is what a Poster needs. Client, Component, Node and Log must be set.
type Config struct {
	// Client speaks core/v1, as package apiclient makes it.
	Client rest.Interface
	// Component is the driver's name.
	Component string
	Node      string
	Log       *slog.Logger
	// Dropped, when set, is called with the number of occurrences that were
	// lost, by Post or by Run.
	Dropped func(occurrences int)
}

// key is what makes two occurrences the same Event.
type key struct {
	about   Object
	kind    Type
	reason  string
	message string
}

// occurrences of one key that the API server has not heard of.
type occurrences struct {
	count int
	first time.Time
	last  time.Time
}

// Poster is the Recorder that posts to the API server.
type Poster struct {
	config Config

	mu      sync.Mutex
	waiting map[key]*occurrences
	order   []key
	stopped bool
	wake    chan struct{}

	// The rest belongs to the goroutine of Run.
	posted *posted
	// unsure is the last moment up to which the API server may hold Events of
	// ours that posted does not know: those of the process before this one,
	// those posted forgot, those whose creation ended in an error.
	unsure time.Time
}

// New makes a Poster. Posts wait until Run is called.
func New(config Config) *Poster {
	return &Poster{
		config:  config,
		waiting: map[key]*occurrences{},
		wake:    make(chan struct{}, 1),
		posted:  newPosted(),
		unsure:  time.Now(),
	}
}

// Post takes an Event and returns at once. An Event that already waits for the
// API server takes no more room when it happens again: only its count grows.
func (p *Poster) Post(about Object, kind Type, reason, message string) {
	if about.APIVersion == "" {
		about.APIVersion = "v1"
	}
	k := key{about: about, kind: kind, reason: reason, message: Message(message)}
	if refusal := p.add(k, time.Now()); refusal != "" {
		p.drop(k, 1, slog.String("error", refusal))
		return
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// add puts one occurrence of k in the queue, or says why it cannot.
func (p *Poster) add(k key, now time.Time) (refusal string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return "the driver is stopping"
	}
	if o := p.waiting[k]; o != nil {
		o.count++
		o.last = now
		return ""
	}
	if len(p.waiting) >= waitingMost {
		return "too many Events wait for the API server"
	}
	p.waiting[k] = &occurrences{count: 1, first: now, last: now}
	p.order = append(p.order, k)
	return ""
}

// take removes the key that waits longest.
func (p *Poster) take() (key, occurrences, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.order) == 0 {
		return key{}, occurrences{}, false
	}
	k := p.order[0]
	p.order[0] = key{} // the array is reused; it must not hold the message
	p.order = p.order[1:]
	o := p.waiting[k]
	delete(p.waiting, k)
	return k, *o, true
}

// Run posts until ctx ends, then for at most drainTime what still waits; the
// rest is dropped, and so is every later Post. It is called once.
func (p *Poster) Run(ctx context.Context) {
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drainTime, cancel) })
	defer stop()
	for working.Err() == nil {
		k, o, found := p.take()
		if found {
			p.post(working, k, o)
			continue
		}
		if ctx.Err() != nil {
			break
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
		}
	}
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	for k, o, found := p.take(); found; k, o, found = p.take() {
		p.drop(k, o.count, slog.String("error", "the driver stopped before the API server took it"))
	}
}

// drop logs and counts what is lost.
func (p *Poster) drop(k key, count int, why slog.Attr) {
	p.config.Log.Warn("an Event was not posted", "reason", k.reason, "message", k.message,
		"occurrences", count, k.about.attribute(), why)
	if p.config.Dropped != nil {
		p.config.Dropped(count)
	}
}
