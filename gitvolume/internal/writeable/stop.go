package writeable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/remote"
)

// stopping is the wish that a volume ends.
type stopping struct {
	// last is what Run does then; it goes on after an error, unless IsFinal.
	last func() error
	done chan error
	// delivered and abandoned are guarded by the mailbox: of the two, whichever comes first
	// counts.
	delivered, abandoned bool
}

// Arm has another class count. It never waits.
func (v *Volume) Arm(arming Arming) { v.mail.put(func() { v.mail.arming = &arming }) }

// TakeCredential says that the credential is another one, or there at last: what waits to
// be pushed is pushed at once. It never waits.
func (v *Volume) TakeCredential() {
	v.mail.put(func() {
		v.mail.credential = true
	})
}

// IsFinal tells of an error of Stop that no repetition can change: there is no tree, or no
// repository, to commit.
func IsFinal(err error) bool { return errors.Is(err, ErrReplaced) || history.IsBroken(err) }

// Stop ends Run when nobody writes the tree any more: what is pending is committed, if the
// volume is armed, and pushed once, which takes no longer than within, nor until the deadline
// of ctx, and whose outcome does not matter. The error is that of the commit, or of ctx, which
// is looked at also while Run is at something that cannot be called off: unless IsFinal, Run
// goes on then, and Stop has to be called again.
func (v *Volume) Stop(ctx context.Context, within time.Duration) error {
	return v.finish(ctx, func() error { return v.end(ctx, within) })
}

// Halt ends Run and leaves everything as it is, for a volume whose repository is broken.
func (v *Volume) Halt() { _ = v.finish(context.Background(), func() error { return nil }) }

// finish has Run do its last, and waits for it until ctx ends.
func (v *Volume) finish(ctx context.Context, last func() error) error {
	stop := &stopping{last: last, done: make(chan error, 1)}
	v.mail.put(func() {
		v.mail.stop = stop
		if v.mail.interrupt != nil {
			v.mail.interrupt()
		}
	})
	select {
	case err := <-stop.done:
		return err
	case <-v.done:
		// It ended by itself, or by this.
		select {
		case err := <-stop.done:
			return err
		default:
			return nil
		}
	case <-ctx.Done():
	}
	if v.mail.abandon(stop) {
		return fmt.Errorf("wait until the tree is looked at and committed: %w", context.Cause(ctx))
	}
	return <-stop.done
}

// Keep commits a tree that nobody has, as a crash may have left it, and pushes nothing.
func (v *Volume) Keep(ctx context.Context) error {
	release, err := v.Use(ctx)
	if err != nil {
		return err
	}
	defer release()
	return v.commitAll(ctx)
}

// lastPasses is how often a tree is looked at that nobody writes any more, while something
// in it changed as it was read: one pass more than a file is waited for.
const lastPasses = 4

// commitAll commits all of a tree that nobody writes. No pass comes after it: what waits for
// the next one is looked at again at once.
func (v *Volume) commitAll(ctx context.Context) error {
	if v.Arming.Unarmed != nil {
		return nil //nolint:nilerr // It is why nothing is to be committed.
	}
	v.agenda.addEverything()
	for range lastPasses {
		if err := v.commit(ctx, true); err != nil {
			return err
		}
		if v.agenda.isEmpty() {
			break
		}
	}
	v.keepMemory()
	return nil
}

// errStopOver is why the push at a stop ends.
var errStopOver = errors.New("the time to push at the stop is over")

// end is the last that Run does.
func (v *Volume) end(ctx context.Context, within time.Duration) error {
	release, err := v.Use(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := v.finishMove(ctx); err != nil {
		return err
	}
	if v.watch != nil {
		if err := v.commitAll(ctx); err != nil {
			return err
		}
		v.keepMemory()
	}
	// What was committed meanwhile took of the time, too.
	within = remote.Patience(ctx, within)
	if within > 0 && (v.position.HasUnpushed() || v.position.HasUnrecorded()) {
		// It is no deadline: a fetch that sees one leaves its caller the last ten seconds of it,
		// and nobody here needs them.
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer time.AfterFunc(within, func() { cancel(errStopOver) }).Stop()
		if err := v.push(ctx); err != nil {
			if errors.Is(context.Cause(ctx), errStopOver) && !errors.Is(err, errStopOver) {
				err = errors.Join(errStopOver, err)
			}
			v.pushFailed(err)
			v.sayKeptHere(err)
		}
	}
	v.sayStopped()
	return nil
}

// deliver forgets a wish that was dealt with, and tells who had it; false: they have gone.
func (m *mailbox) deliver(stop *stopping, err error) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stop == stop {
		m.stop = nil
	}
	if stop.abandoned {
		return false
	}
	stop.delivered = true
	stop.done <- err
	return true
}

// abandon takes a wish back; false: it was dealt with just then.
func (m *mailbox) abandon(stop *stopping) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if stop.delivered {
		return false
	}
	stop.abandoned = true
	if m.stop == stop {
		m.stop = nil
	}
	return true
}

// interruptible has interrupt called when somebody comes who cannot wait; false: somebody
// has.
func (m *mailbox) interruptible(interrupt context.CancelFunc) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.interrupt = interrupt
	return m.stop == nil
}
