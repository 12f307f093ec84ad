package nodevolume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

const (
	// firstRepair and lastRepair bound the delay until a repair is tried again.
	firstRepair = 10 * time.Second
	lastRepair  = 5 * time.Minute
	// asideEvery is between two repositories of one volume that are set aside: what breaks
	// each time is not mended by fetching all of it again.
	asideEvery = 10 * time.Minute
	// mostEnds is how often in a row the process may end in work on the volume before it
	// is left alone, for firstRest and twice as long each time, up to lastRest.
	mostEnds  = 2
	firstRest = time.Minute
	lastRest  = time.Hour
)

// work is what goes on with the tree, from Publish, Resume or Linger to Stop. Its fields
// are the attending goroutine's, until that has ended.
type work struct {
	// machine is nil while it cannot be had, and runs tells that it runs already.
	machine *machine
	runs    bool
	// again is how the tree is taken up once more.
	again taking
	// lingers tells that nobody has the tree.
	lingers bool
	// rest is how long the tree is left alone first.
	rest time.Duration

	stop  context.CancelFunc
	ended chan struct{}
}

// begin has work go on until end. The caller holds mu.
func (v *Volume) begin(w *work) {
	ctx, stop := context.WithCancel(context.Background())
	w.stop, w.ended = stop, make(chan struct{})
	v.work = w
	if w.machine != nil && !w.runs {
		w.machine.follow()
	}
	go func() {
		defer close(w.ended)
		v.attend(ctx, w)
	}()
}

// end ends work, and gives its machine, which still runs; nil: there is none. The caller
// holds mu.
func (v *Volume) end() *machine {
	w := v.work
	v.work = nil
	w.stop()
	<-w.ended
	return w.machine
}

// attend repairs what breaks.
func (v *Volume) attend(ctx context.Context, w *work) {
	for {
		if w.machine == nil && !v.restore(ctx, w) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case err := <-w.machine.broken:
			v.giveUp(w, err)
		case <-w.machine.ended:
			// Nothing is left to push.
			err := v.closeMachine(w.machine)
			if w.machine = nil; err != nil {
				v.Log.Warn("a volume that has nothing left to push was not closed well", "error", err)
			}
			return
		}
	}
}

// giveUp ends a machine whose repository is broken. Nobody commits the tree until there is
// another, and nothing of it is lost.
func (v *Volume) giveUp(w *work, why error) {
	v.Log.Error("the repository is broken: it is set aside, and fetched again", "error", why)
	w.machine.Halt()
	if err := v.closeMachine(w.machine); err != nil {
		v.Log.Warn("the broken repository was not closed well", "error", err)
	}
	take, broke := w.again, w.machine.instance
	w.machine = nil
	// What is broken may not be what is read when the tree is taken up.
	w.again = func(ctx context.Context, m *machine) error {
		if m.instance == broke {
			return why
		}
		return take(ctx, m)
	}
}

// restore takes the tree up again, as often as it needs; false: ctx ended before.
func (v *Volume) restore(ctx context.Context, w *work) bool {
	if !wait(ctx, w.rest, nil) {
		return false
	}
	for delay := firstRepair; ; delay = min(2*delay, lastRepair) {
		m, err := v.ready(ctx, w.again)
		if err == nil {
			w.machine = m
			m.follow()
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		v.Report.Raise(report.CommitFailed, notTakenUp(err))
		if !wait(ctx, delay, v.hurried) {
			return false
		}
	}
}

func notTakenUp(why error) string {
	return fmt.Sprintf("the tree cannot be taken up again yet: %v", why)
}

// wait waits, shorter if something hurries it; false: ctx ended before.
func wait(ctx context.Context, d time.Duration, hurried <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-hurried:
		return true
	case <-ctx.Done():
		return false
	}
}

// rebuilt is a machine that has taken up the tree with a new repository, which is fetched
// again. The broken one is set aside, unless it is new already: then another volume found
// it to be broken, and made it.
func (v *Volume) rebuilt(ctx context.Context, take taking, why error) (*machine, error) {
	if err := v.setRepositoryAside(ctx, why); err != nil {
		return nil, err
	}
	m, err := v.taken(ctx, func(ctx context.Context, m *machine) error {
		if err := m.Rebuild(ctx); err != nil {
			return err
		}
		if err := v.save(func(r *store.Record) { r.Repository = m.instance }); err != nil {
			return err
		}
		return take(ctx, m)
	})
	return m, err
}

// setRepositoryAside sets the repository aside that the volume's commits are in.
func (v *Volume) setRepositoryAside(ctx context.Context, why error) error {
	instance, err := v.repository.Instance()
	if err != nil {
		return err
	}
	if known := v.current().Repository; known != instance && known != (store.Identity{}) {
		return nil
	}
	// A process that can open no file finds every repository broken.
	if _, err := os.ReadDir(filepath.Join(v.repository.Dir(), "objects")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look at a repository that seems to be broken (%w): %w", why, err)
	}
	if since := time.Since(v.asideAt); since < asideEvery {
		return fmt.Errorf("the repository is broken again, and not set aside more than once in %s: %w", asideEvery, why)
	}
	if _, err := v.repository.SetAside(ctx, instance, why.Error()); err != nil {
		return err
	}
	v.asideAt = time.Now()
	return nil
}

// suspicion is for how long the volume is to be left alone yet.
func (v *Volume) suspicion() time.Duration {
	ends := v.Store.Suspects()[v.handle()]
	if ends < mostEnds {
		return 0
	}
	rest := lastRest
	if doublings := ends - mostEnds; doublings < 6 {
		rest = min(firstRest<<doublings, lastRest)
	}
	return time.Until(v.Began.Add(rest))
}

func (v *Volume) unfollowed() error {
	return fmt.Errorf("%w: the driver ended %d times in a row while it worked on it, and what is written is not committed meanwhile; the driver's log of these ends tells more",
		ErrUnfollowed, v.Store.Suspects()[v.handle()])
}
