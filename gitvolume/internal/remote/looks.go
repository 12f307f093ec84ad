package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// LookTimeout bounds a look: a remote may drip for ever.
const LookTimeout = 2 * time.Minute

// Lister is what Looks has do the work: a Command.
type Lister interface {
	List(ctx context.Context, remote Remote, names ...string) (*Refs, error)
}

// Glance is a look at a remote that somebody wants.
type Glance struct {
	// Remote is what is looked at. Its Session is set by Looks.
	Remote Remote
	// Credential is as whom; nil as nobody.
	Credential Credential
	// Names are of the refs that are looked for.
	Names []string
	// Failed is called once of a look that failed, by one of those who wanted it; nil: nothing is.
	Failed func()
}

// Looks has those who want to look at one repository, as the same and within the same limits,
// share a look: at most one of them runs at a time. Who has another credential waits for
// nobody.
type Looks struct {
	lister Lister
	mu     sync.Mutex
	of     map[scope]*glances
}

// glances are the look that runs and the one that waits for it, if there is one.
type glances struct{ running, next *look }

// look is one that runs or waits for its turn. Names, waiting and runs are Looks.mu's.
type look struct {
	glance  Glance
	names   map[string]bool
	waiting int // How many wait for it.
	runs    bool
	ctx     context.Context
	callOff context.CancelFunc
	done    chan struct{}
	refs    *Refs
	err     error
}

// NewLooks has nothing to do yet.
func NewLooks(lister Lister) *Looks { return &Looks{lister: lister, of: map[scope]*glances{}} }

// Look waits for a look for the names that runs already, or for one that begins. It is ended
// when nobody waits for it any more, and after LookTimeout with ErrTimeout.
func (l *Looks) Look(ctx context.Context, g Glance) (*Refs, error) {
	return l.look(ctx, g, false)
}

// LookAnew is Look of what the remote has from now on.
func (l *Looks) LookAnew(ctx context.Context, g Glance) (*Refs, error) {
	return l.look(ctx, g, true)
}

func (l *Looks) look(ctx context.Context, g Glance, anew bool) (*Refs, error) {
	one := l.join(g, anew)
	select {
	case <-one.done:
		return one.refs, one.err
	case <-ctx.Done():
	}
	l.mu.Lock()
	one.waiting--
	isLast, runs := one.waiting == 0, one.runs
	if isLast {
		one.callOff()
	}
	l.mu.Unlock()
	if isLast && runs {
		<-one.done // Its processes are gone then.
	}
	return nil, fmt.Errorf("look at the remote: %w", endReason(ctx))
}

// join finds a look that fits or begins one.
func (l *Looks) join(g Glance, anew bool) *look {
	s := scopeOf(Demand{Request: Request{Remote: g.Remote}, Credential: g.Credential})
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.of[s]
	if all == nil {
		all = &glances{}
		l.of[s] = all
	}
	if r := all.running; r != nil && !anew && r.ctx.Err() == nil && r.covers(g.Names) {
		r.waiting++
		return r
	}
	if all.next == nil || all.next.ctx.Err() != nil {
		all.next = &look{glance: g, names: map[string]bool{}, done: make(chan struct{})}
		all.next.ctx, all.next.callOff = context.WithCancel(context.Background())
	}
	next := all.next
	next.waiting++
	for _, name := range g.Names {
		next.names[name] = true
	}
	if all.running == nil {
		l.begin(s, all)
	}
	return next
}

func (o *look) covers(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !o.names[name] })
}

// begin has the look run that waits. The caller holds mu.
func (l *Looks) begin(s scope, all *glances) {
	all.running, all.next = all.next, nil
	if all.running == nil {
		delete(l.of, s)
		return
	}
	all.running.runs = true
	one, names := all.running, slices.Sorted(maps.Keys(all.running.names))
	go func() {
		one.refs, one.err = one.do(l.lister, names)
		called := one.ctx.Err() != nil
		one.callOff()
		if one.err != nil && !called && one.glance.Failed != nil {
			one.glance.Failed()
		}
		close(one.done)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.begin(s, all)
	}()
}

func (o *look) do(lister Lister, names []string) (*Refs, error) {
	within, cancel := context.WithTimeout(o.ctx, LookTimeout)
	defer cancel()
	r := o.glance.Remote
	if o.glance.Credential != nil {
		session, closing, err := o.glance.Credential.Open()
		if err != nil {
			return nil, fmt.Errorf("serve the credential: %w", err)
		}
		defer closing()
		r.Session = session
	}
	refs, err := lister.List(within, r, names...)
	if err != nil && within.Err() != nil && o.ctx.Err() == nil && !errors.Is(err, ErrTimeout) {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return refs, err
}
