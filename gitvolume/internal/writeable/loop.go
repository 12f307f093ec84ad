package writeable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/ignore"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// Watch begins to watch the tree; Run follows it then.
func (v *Volume) Watch() error {
	watch, err := v.Watches.Start(v.Dir)
	if err != nil {
		return fmt.Errorf("watch the tree: %w", err)
	}
	v.watch, v.unannounced = watch, true
	return nil
}

// Run follows the volume until Stop: with a watch it commits and pushes what is written;
// without one, as while no pod has the tree, it only pushes what the remote lacks, and
// returns when there is nothing left of that.
func (v *Volume) Run() {
	defer close(v.done)
	v.ran = true
	if v.watch != nil {
		defer v.watch.Stop()
		// What was written before, nobody announced.
		v.agenda.addEverything()
		v.clock.wrote(time.Now())
		v.sayArming()
	}
	defer v.endTurn(context.Canceled)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-v.signals():
			v.clock.wrote(time.Now())
		case <-v.mail.wake:
		case <-timer.C:
		}
		if stop := v.told(); stop != nil {
			v.endTurn(context.Canceled)
			err := stop.last()
			if v.mail.deliver(stop, err) && (err == nil || IsFinal(err)) {
				return
			}
		}
		v.work()
		next := v.next(time.Now())
		if next.IsZero() && v.turn.isAwaited() {
			timer.Stop()
			continue
		}
		if next.IsZero() && v.watch == nil {
			if stop := v.told(); stop != nil {
				v.mail.deliver(stop, nil)
			}
			return
		}
		timer.Reset(time.Until(next))
	}
}

func (v *Volume) signals() <-chan struct{} {
	if v.watch == nil {
		return nil
	}
	return v.watch.C()
}

// next is when something is due next; zero if nothing is.
func (v *Volume) next(now time.Time) time.Time {
	if v.position.Move != nil || v.position.IsLateOnRef() || v.clock.barred {
		// Before anything else.
		if v.clock.restUntil.Before(now) {
			return now
		}
		return v.clock.restUntil
	}
	next := v.remoteDue()
	if v.turn.isAwaited() {
		next = time.Time{} // The mail tells when.
	}
	if v.watch == nil {
		return next
	}
	tree := earlier(v.lookDue(), v.scanDue())
	if tree.Before(v.clock.restUntil) {
		tree = v.clock.restUntil
	}
	return earlier(next, tree)
}

func (v *Volume) lookDue() time.Time {
	if v.Arming.Unarmed != nil {
		return v.clock.lookDue(max(unarmedQuiet, v.clock.cost), max(unarmedLatency, 20*v.clock.cost))
	}
	return v.clock.lookDue(v.Arming.Policy.Quiesce, v.Arming.Policy.MaxLatency)
}

func (v *Volume) scanDue() time.Time {
	return v.clock.scanDue(v.ScanEvery, v.Arming.Policy.Quiesce, v.watch.State().Degraded)
}

// work does what is due.
func (v *Volume) work() {
	// A slot that has come is used now, or by others.
	defer v.putTurn()
	now := time.Now()
	if !isDue(v.next(now), now) {
		return
	}
	ctx := context.Background()
	release, err := v.Use(ctx)
	v.clock.barred = err != nil
	if err != nil {
		v.stuck(err)
		return
	}
	defer release()
	if !now.Before(v.clock.restUntil) {
		err := v.finishMove(ctx)
		if err == nil && v.watch != nil {
			err = v.workTree(ctx, now)
		}
		if err != nil {
			v.stuck(err)
		} else {
			v.clock.works()
		}
	}
	if v.position.Move == nil {
		v.workRemote(ctx)
	}
}

// workTree looks at the tree and commits it, as it is due.
func (v *Volume) workTree(ctx context.Context, now time.Time) error {
	due := isDue(v.lookDue(), now)
	switch {
	case due && v.Arming.Unarmed != nil:
		_, err := v.look(ctx)
		return err
	case due:
		quiet := isDue(v.clock.lastWrite.Add(v.Arming.Policy.Quiesce), now)
		err := v.commit(ctx, quiet)
		if err == nil {
			v.keepFirstMemory()
		}
		return err
	case isDue(v.scanDue(), now):
		return v.rescan(ctx, now)
	}
	return nil
}

// rescan looks at everything of its own accord. What it finds is as if it was written now.
func (v *Volume) rescan(ctx context.Context, now time.Time) error {
	waiting := v.clock
	v.agenda.addEverything()
	unread, err := v.look(ctx)
	if err != nil {
		return err
	}
	if v.pending > 0 || v.unrecorded {
		v.clock.lastWrite, v.clock.firstWrite = waiting.lastWrite, waiting.firstWrite
		if v.clock.lastWrite.IsZero() {
			v.clock.wrote(now)
		}
		return nil
	}
	v.agenda = agenda{}
	v.agenda.addSubtrees(unread)
	v.keepMemory()
	return nil
}

// keepFirstMemory keeps the memory of the first look at everything, which is worth the
// most; later ones are brought up to date by what was committed since.
func (v *Volume) keepFirstMemory() {
	if v.remembered == (store.Remembered{}) {
		v.keepMemory()
	}
}

// longestRemote bounds work with the remote: nothing is committed meanwhile, and a remote
// whose hook never ends keeps the connection alive.
const longestRemote = time.Hour

// workRemote pushes, as it is due.
func (v *Volume) workRemote(ctx context.Context) {
	if !isDue(v.remoteDue(), time.Now()) {
		return
	}
	if v.needsTurn() {
		v.awaitTurn()
		return
	}
	ctx, cancel := context.WithTimeout(v.turn.until(ctx), longestRemote)
	defer cancel()
	if !v.mail.interruptible(cancel) {
		return // Somebody who cannot wait has come.
	}
	defer v.mail.interruptible(nil)
	if isDue(v.clock.askAt, time.Now()) {
		v.ask(ctx)
		return
	}
	if err := v.push(ctx); !wasInterrupted(ctx) {
		v.endTurn(err)
		if err != nil {
			v.pushFailed(err)
		}
	}
	v.noteTry()
}

// wasInterrupted tells whether somebody came who could not wait, whatever else went wrong. A
// turn that is over is no such thing.
func wasInterrupted(ctx context.Context) bool { return errors.Is(context.Cause(ctx), context.Canceled) }

// ask asks the remote what it has, which could not be done when the volume was started.
func (v *Volume) ask(ctx context.Context) {
	_, err := v.fetch(ctx)
	if wasInterrupted(ctx) {
		return
	}
	v.endTurn(err)
	if err != nil {
		err = v.examined(err)
		v.complain(err)
		v.sayStale(err)
		return
	}
	v.sayFetched()
}

// remoteDue is when something is due that the remote is needed for.
func (v *Volume) remoteDue() time.Time { return earlier(v.pushDue(), v.clock.askAt) }

// pushDue is when a push is due, be it of the metadata alone.
func (v *Volume) pushDue() time.Time {
	due := v.clock.pushDue(v.Arming.Policy.MaxLatency)
	if v.position.HasUnrecorded() && v.clock.retryAt.IsZero() {
		due = earlier(due, v.clock.recordAt)
	}
	return due
}

// pushFailed has the push tried again later.
func (v *Volume) pushFailed(err error) {
	err = v.examined(err)
	var after time.Duration
	var declined *remote.Declined
	var failure *remote.Failure
	if errors.As(err, &declined) {
		after = declined.After
	} else if errors.As(err, &failure) {
		after = failure.After
	}
	v.clock.failed(time.Now(), after, v.Jitter())
	v.complain(err)
	v.sayPushFailed(err)
}

// stuck has what could not be done on this machine tried again in a while.
func (v *Volume) stuck(err error) {
	v.sayStuck(err)
	v.complain(err)
	v.agenda.addEverything()
	v.clock.rest(time.Now(), v.Jitter())
}

// complain tells the owner of a broken repository.
func (v *Volume) complain(err error) {
	if v.Broken != nil && history.IsBroken(err) {
		v.Broken(err)
	}
}

// take makes an arming the one in force.
func (v *Volume) take(arming Arming) {
	v.Arming = arming
	v.class = ignore.FromList(arming.Policy.Ignore)
}

// told reads what others told the volume; stop is not nil if it is to end.
func (v *Volume) told() (stop *stopping) {
	m := &v.mail
	m.mu.Lock()
	arming, credential := m.arming, m.credential
	stop = m.stop
	m.arming, m.credential = nil, false
	m.mu.Unlock()
	v.takeTurn()
	if arming != nil {
		v.rearm(*arming)
	}
	if credential {
		v.clock.hurry(time.Now())
	}
	return stop
}

// rearm takes another class: all there is counts as written now, by the rules of that.
func (v *Volume) rearm(arming Arming) {
	kept := v.keepsRecord()
	v.take(arming)
	if v.position.Partial && v.keepsRecord() && !kept {
		// What was committed without a record is in none.
		if err := v.forget(); err != nil {
			v.stuck(err)
		}
	}
	v.seen, v.unannounced = nil, true
	v.agenda.addEverything()
	if v.watch != nil {
		v.clock.wrote(time.Now())
		v.sayArming()
	}
}
