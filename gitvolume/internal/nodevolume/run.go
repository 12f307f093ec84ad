package nodevolume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

// taking has a machine take up the tree.
type taking func(ctx context.Context, m *machine) error

func publish(ctx context.Context, m *machine) error {
	if err := m.Prepare(ctx); err != nil {
		return err
	}
	return m.Watch()
}

func resume(ctx context.Context, m *machine) error {
	if err := m.Resume(ctx); err != nil {
		return err
	}
	return m.Watch()
}

// linger takes up a tree that nobody has, to push what the remote lacks.
func linger(ctx context.Context, m *machine) error { return m.Resume(ctx) }

func keep(ctx context.Context, m *machine) error {
	if err := m.Resume(ctx); err != nil {
		return err
	}
	return m.Keep(ctx)
}

// Publish brings the tree to where an application may have it, and follows it from then
// on. Nobody has it yet. The errors are those of writeable's Prepare, store.ErrFull and
// ErrVolatile where there is no tree yet, and ErrUnfollowed; after one of them Publish may
// be called again.
func (v *Volume) Publish(ctx context.Context) error {
	v.Access.Begin()
	err := v.start(ctx, publish)
	v.doneUnlessCut(ctx, err)
	return err
}

// Resume follows a tree that an application may have had all the time, without asking the
// remote first. Where that cannot be, it is said and tried again until it can, or Stop: the
// application writes on. An error says that ctx ended before.
func (v *Volume) Resume(ctx context.Context) error {
	err := v.start(ctx, resume)
	if err != nil && ctx.Err() == nil {
		v.resumeLater(err)
		err = nil
	}
	if err == nil && !v.Access.HasCredential() {
		v.Report.Raise(report.CredentialMissing, "the volume waits for its credential, which comes with the next publish")
	}
	return err
}

// resumeLater has the tree be taken up as soon as that can be.
func (v *Volume) resumeLater(why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.Report.Raise(report.CommitFailed, notTakenUp(why))
	if v.work == nil {
		v.begin(&work{again: resume})
	}
}

// start has work begin that follows the tree.
func (v *Volume) start(ctx context.Context, take taking) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.work != nil && !v.work.lingers {
		return nil
	}
	if err := v.endLinger(); err != nil {
		return err
	}
	kept := v.hasTree()
	if !kept {
		if err := v.checkRoom(); err != nil {
			return err
		}
	}
	err := v.save(func(r *store.Record) {
		r.Class = v.class()
		r.Position.Stopped = false
	})
	if err != nil {
		return err
	}
	if rest := v.suspicion(); rest > 0 {
		if !kept {
			return v.unfollowed()
		}
		v.Report.Raise(report.Unfollowed, v.unfollowed().Error())
		v.begin(&work{again: resume, rest: rest})
		return nil
	}
	m, err := v.ready(ctx, take)
	if err != nil {
		return err
	}
	v.begin(&work{machine: m, again: resume})
	return nil
}

// hasTree tells whether there is the tree that the record names.
func (v *Volume) hasTree() bool {
	named := v.Position().Tree
	found, err := store.Identify(v.Dir)
	return err == nil && named != store.Identity{} && found == named
}

// checkRoom tells whether a new tree may be made.
func (v *Volume) checkRoom() error {
	if v.Volatile != "" && v.isStores() {
		return fmt.Errorf("%w: %s", ErrVolatile, v.Volatile)
	}
	return v.Store.CheckFree()
}

// isStores tells whether the tree is in the store, and not a directory of somebody's.
func (v *Volume) isStores() bool { return v.Dir == v.Store.TreeDir(v.handle()) }

// Keep commits a tree that nobody has, as a crash may have left it, under the class that
// its record names. What it does not commit, the next start does.
func (v *Volume) Keep(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.keepTree(ctx, v.ready)
}

// keepTree is Keep by a machine that is made so. The caller holds mu.
func (v *Volume) keepTree(ctx context.Context, made func(context.Context, taking) (*machine, error)) error {
	class := v.current().Class
	if v.work != nil || class.Policy == nil || !class.Policy.Armed || v.Position().Tree == (store.Identity{}) {
		return nil
	}
	if v.suspicion() > 0 {
		v.Report.Raise(report.Unfollowed, v.unfollowed().Error())
		return v.unfollowed()
	}
	// The class that counts now is not known before the cluster was asked.
	v.keepUnder(&writeable.Arming{Policy: *class.Policy, Class: class.Name})
	defer v.keepUnder(nil)
	m, err := made(ctx, keep)
	if err != nil {
		return err
	}
	return v.closeMachine(m)
}

func (v *Volume) keepUnder(arming *writeable.Arming) {
	v.stateMu.Lock()
	defer v.stateMu.Unlock()
	v.keptUnder = arming
}

// Linger pushes what a tree that nobody has still has to push. It waits until that was tried
// once, no longer than within nor until the deadline of ctx, and has pushes go on after that
// until all is pushed, Publish or Stop. What is not pushed by then is said.
func (v *Volume) Linger(ctx context.Context, within time.Duration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.work != nil || !v.owes() || v.suspicion() > 0 {
		return nil
	}
	m, err := v.ready(ctx, linger)
	if err != nil {
		return err
	}
	v.begin(&work{machine: m, again: linger, lingers: true})
	ctx, cancel := context.WithTimeout(ctx, remote.Patience(ctx, within))
	defer cancel()
	select {
	case <-v.work.ended:
	case <-m.Tried():
	case <-ctx.Done():
	}
	if v.owes() {
		v.sayKept()
	}
	return nil
}

// owes tells whether the remote lacks something of what is committed.
func (v *Volume) owes() bool { return v.Position().Owes() }

// sayKept says how much of the volume is on this node alone.
func (v *Volume) sayKept() {
	unpushed, err := v.unpushed()
	what := "the record of modes and owners is"
	switch {
	case err != nil:
		v.Log.Warn("how many commits are on this node alone is not known", "error", err)
		what = "commits are"
	case unpushed == 1:
		what = "1 commit is"
	case unpushed > 0:
		what = fmt.Sprintf("%d commits are", unpushed)
	}
	v.Log.Warn("the volume is left with what is on this node alone", "commits", unpushed, "tip", v.Position().Tip.String())
	v.Report.Raise(report.PushFailed, what+" on this node alone; the tree stays, and the next start of the volume here pushes what no push before has taken")
}

// unpushed counts the commits that the remote lacks.
func (v *Volume) unpushed() (int, error) {
	p := v.Position()
	if !p.HasUnpushed() {
		return 0, nil
	}
	open, err := history.Open(v.repository.Dir())
	if err != nil {
		return 0, err
	}
	defer open.Close()
	own, err := open.Own(p.Published(), p.Tip)
	return len(own), err
}

// endLinger ends the pushing that goes on without a pod. There is nothing to commit; a move
// that is not finished, whoever takes up the tree next finishes. It must not fail while the
// machine still runs, of which the repository is closed then.
func (v *Volume) endLinger() error {
	if v.work == nil {
		return nil
	}
	m := v.end()
	if m == nil {
		return nil
	}
	m.Halt()
	return v.closeMachine(m)
}

// Stop commits what is pending, pushes it once within a time, and follows the tree no
// more: nobody has it any longer. An error says that not all was committed, and that Stop
// has to be called again. With a repository that is broken and cannot be fetched, or a
// tree that is not the volume's, there is nothing to wait for: the next start commits.
func (v *Volume) Stop(ctx context.Context, within time.Duration) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.work == nil {
		return nil
	}
	stopped := v.work
	m := v.end()
	if m == nil {
		return v.stopWithout(ctx, stopped)
	}
	err := m.Stop(ctx, within)
	switch {
	case err == nil && stopped.lingers:
	case err == nil:
		err = v.save(func(r *store.Record) { r.Position.Stopped = true })
	case writeable.IsFinal(err):
		v.Log.Error("the tree is not committed", "error", err)
		err = nil
	default:
		v.begin(&work{machine: m, again: stopped.again, lingers: stopped.lingers, runs: true})
		return err
	}
	return errors.Join(err, v.closeMachine(m))
}

// stopWithout is Stop of a tree that could not be taken up so far, for which there was no
// machine: it is committed if it can be taken up now, without the remote, for which no stop
// waits.
func (v *Volume) stopWithout(ctx context.Context, stopped *work) error {
	if stopped.lingers {
		return nil // Nothing was left to push.
	}
	err := v.keepTree(ctx, v.taken)
	switch {
	case err == nil:
	case errors.Is(err, ErrUnfollowed), writeable.IsFinal(err):
		v.Log.Error("the tree is not committed", "error", err)
	default:
		v.begin(&work{again: stopped.again})
		return err
	}
	return nil
}

// ready is a machine that has taken up the tree. A tree that is not the volume's and a
// repository that is broken are set aside once.
func (v *Volume) ready(ctx context.Context, take taking) (*machine, error) {
	m, err := v.taken(ctx, take)
	switch {
	case err == nil:
		return m, nil
	case v.isStores() && (errors.Is(err, writeable.ErrReplaced) || errors.Is(err, writeable.ErrForeignTree)):
		if err := v.setTreeAside(); err != nil {
			return nil, err
		}
		return v.taken(ctx, take)
	case history.IsBroken(err):
		return v.rebuilt(ctx, take, err)
	}
	return nil, err
}

// taken is a machine that has taken up the tree.
func (v *Volume) taken(ctx context.Context, take taking) (*machine, error) {
	m, err := v.newMachine(ctx)
	if err != nil {
		return nil, err
	}
	err = take(ctx, m)
	if err == nil && v.current().Repository != m.instance {
		err = v.save(func(r *store.Record) { r.Repository = m.instance })
	}
	if err != nil {
		return nil, errors.Join(err, v.closeMachine(m))
	}
	v.Report.Clear(report.Unfollowed)
	return m, nil
}

// setTreeAside moves away what is in the place of the tree; where it is gone there is
// nothing to move.
func (v *Volume) setTreeAside() error {
	if _, err := os.Lstat(v.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	const why = "it is not the directory that was made for this volume"
	path, err := v.Store.SetAsideTree(v.handle(), why)
	if err != nil {
		return err
	}
	v.Report.Raise(report.SetAside, fmt.Sprintf("what was in place of the tree was set aside at %s: %s", path, why))
	return nil
}
