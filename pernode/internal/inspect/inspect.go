// Package inspect looks at every copy now and then, so that the kubelet's
// questions about usage and health, and the metrics, are answered from memory.
//
// It must never change a copy, and a disk that does not answer must hang one
// goroutine for each copy on it and nothing else: no look at another copy, and
// never for longer than a moment whoever asks.
package inspect

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"liken.sh/csicommon/usage"
	"liken.sh/pernode/internal/copies"
)

const (
	// lookEvery is how often each copy is looked at: an open, a read of one
	// directory entry and a statfs.
	lookEvery = 30 * time.Second
	// settle is how long after a publish or unpublish its copy is looked at, so
	// that a burst of calls costs one look and none of them waits beside it.
	settle = time.Second
	// hungAfter is how long one look may take before its copy counts as one that
	// cannot be read.
	hungAfter = 30 * time.Second
	// patience is how long anything waits for one look, before it goes on while
	// that is left to itself.
	patience = time.Second
	// looks is how many looks may wait for the disk at the same time, each with a
	// thread of its own. Those beyond it wait for them, without one.
	looks = 64
)

// Store is what inspecting needs of the copies; *copies.Store is it. Every method
// may hang.
type Store interface {
	List() ([]string, error)
	Holds() ([]string, error)
	Open(volume string) (*os.File, error)
	State(volume string) (copies.State, error)
	Space() (usage.Space, error)
}

// Config is what an Inspector needs.
type Config struct {
	Store Store
	Log   *slog.Logger
}

// Inspector keeps the newest verdict, usage and state of each copy.
type Inspector struct {
	config  Config
	meter   *usage.Meter
	wake    chan struct{}
	slots   chan struct{} // Holds one for each look that waits for the disk.
	stopped chan struct{} // Closed when Run has ended: the store may be closed.
	listed  chan struct{} // Closed when the copies were listed and looked at once.
	round   question
	list    question
	sizing  question

	mu       sync.Mutex
	touched  map[string]bool
	subjects map[string]*subject
	space    usage.Space
	sized    bool              // There is a space.
	faults   map[string]string // What failed the last time in the store as such, by what that is.
}

// subject is what is known of a volume. One that has no copy, no pod and nothing
// wrong with it is none. Inspector.mu guards all but the look.
type subject struct {
	look       question
	exists     bool
	held       bool
	conditions []Condition
}

// New makes an Inspector that knows nothing before Run.
func New(config Config) *Inspector {
	return &Inspector{
		config:   config,
		meter:    usage.NewMeter(usage.Config{Open: config.Store.Open, Log: config.Log}),
		wake:     make(chan struct{}, 1),
		slots:    make(chan struct{}, looks),
		stopped:  make(chan struct{}),
		listed:   make(chan struct{}),
		touched:  make(map[string]bool),
		subjects: make(map[string]*subject),
		faults:   make(map[string]string),
	}
}

// Run looks until ctx ends; it is called once. What hangs then is left to itself.
func (i *Inspector) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { i.meter.Run(ctx) })
	defer group.Wait()
	defer close(i.stopped)
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	i.lookAtAll()
	var settled <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-i.wake:
			settled = time.After(settle)
		case <-settled:
			for volume := range i.takeTouched() {
				if ctx.Err() == nil {
					i.lookAndWait(volume)
				}
			}
		case <-ticker.C:
			i.lookAtAll()
		}
	}
}

// Touch says that a volume was published or unpublished. It never waits.
func (i *Inspector) Touch(volume string) {
	i.meter.Touch(volume)
	i.mu.Lock()
	i.touched[volume] = true
	i.mu.Unlock()
	select {
	case i.wake <- struct{}{}:
	default:
	}
}

// Forget drops what is known of a copy that was removed.
func (i *Inspector) Forget(volume string) {
	i.meter.Forget(volume)
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.subjects, volume)
}

// Usage returns what a copy uses, waiting for its first measurement until ctx
// ends; then the error wraps usage.ErrNotMeasured.
func (i *Inspector) Usage(ctx context.Context, volume string) (usage.Usage, error) {
	return i.meter.Usage(ctx, volume)
}

// Verdict returns what is wrong with a volume's copy, sorted by reason and each
// reason once; nothing for one that is well or not known. It never touches the
// disk.
func (i *Inspector) Verdict(volume string) []Condition {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, known := i.subjects[volume]
	switch {
	case !known:
		return nil
	case s.look.silent() > hungAfter:
		return []Condition{{Inaccessible, CopyUnreadable, "the disk has not answered a look at the copy"}}
	case i.list.silent() > hungAfter:
		return []Condition{{Inaccessible, CopyUnreadable, "the store's disk has not answered a look at its copies"}}
	}
	return s.conditions
}
