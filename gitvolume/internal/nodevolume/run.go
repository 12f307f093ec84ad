package nodevolume

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

const (
	// firstRepair and lastRepair bound the delay until a repair is tried again.
	firstRepair = 10 * time.Second
	lastRepair  = 5 * time.Minute
)

// Publish brings the tree to where an application may have it, and follows it from then
// on. Nobody has it yet. The errors are those of writeable's Prepare; after one of them
// Publish may be called again.
func (v *Volume) Publish(ctx context.Context) error {
	return v.start(ctx, func(m *machine) error { return m.Prepare(ctx) })
}

// Resume follows a tree that an application may have had all the time, without asking the
// remote first.
func (v *Volume) Resume(ctx context.Context) error {
	return v.start(ctx, func(m *machine) error { return m.Resume(ctx) })
}

// start makes a machine, has it take up the tree and run.
func (v *Volume) start(ctx context.Context, take func(m *machine) error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.machine != nil {
		return nil
	}
	err := v.save(func(r *store.Record) {
		v.recordClass(r)
		r.Position.Stopped = false
	})
	if err != nil {
		return err
	}
	m, err := v.ready(ctx, take)
	if err != nil {
		return err
	}
	v.follow(m)
	return nil
}

// ready is a machine that has taken up the tree and watches it. A tree that is not the
// volume's and a repository that is broken are set aside once.
func (v *Volume) ready(ctx context.Context, take func(m *machine) error) (*machine, error) {
	m, err := v.taken(ctx, take)
	switch {
	case v.isForeign(err) && v.Dir == v.Store.TreeDir(v.handle()):
		if err := v.setTreeAside(); err != nil {
			return nil, err
		}
		return v.taken(ctx, take)
	case writeable.IsRepositoryBroken(err):
		if err := v.setRepositoryAside(ctx, err); err != nil {
			return nil, err
		}
		return v.taken(ctx, func(m *machine) error {
			if err := m.Rebuild(ctx); err != nil {
				return err
			}
			return take(m)
		})
	}
	return m, err
}

// isForeign tells of the error of what is in place of the volume's tree and is none. Of a
// tree whose record was lost nobody knows any more what of it is committed.
func (v *Volume) isForeign(err error) bool {
	return errors.Is(err, writeable.ErrReplaced) || errors.Is(err, writeable.ErrForeignTree)
}

// taken is a machine that has taken up the tree and watches it.
func (v *Volume) taken(ctx context.Context, take func(m *machine) error) (*machine, error) {
	m, err := v.newMachine(ctx)
	if err != nil {
		return nil, err
	}
	if err = take(m); err == nil {
		err = m.Watch()
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

func (v *Volume) setTreeAside() error {
	const why = "it is not the directory that was made for this volume"
	path, err := v.Store.SetAsideTree(v.handle(), why)
	if err != nil {
		return err
	}
	v.Report.Raise(report.SetAside, fmt.Sprintf("what was in place of the tree was set aside at %s: %s", path, why))
	return nil
}

func (v *Volume) setRepositoryAside(ctx context.Context, why error) error {
	instance, err := v.repository.Instance()
	if err != nil {
		return err
	}
	_, err = v.repository.SetAside(ctx, instance, why.Error())
	return err
}

// follow runs a machine until Stop. The caller holds mu.
func (v *Volume) follow(m *machine) {
	v.exchange(m)
	go m.Run()
	v.attend()
}

// attend repairs what breaks, until v.stop.
func (v *Volume) attend() {
	ctx, stop := context.WithCancel(context.Background())
	repaired := make(chan struct{})
	v.setStop(stop)
	v.repaired = repaired
	go func() {
		defer close(repaired)
		for {
			select {
			case <-ctx.Done():
				return
			case err := <-v.broken:
				v.repair(ctx, err)
			}
		}
	}()
}

func (v *Volume) setStop(stop context.CancelFunc) {
	v.machineMu.Lock()
	defer v.machineMu.Unlock()
	v.stop = stop
}

// repair takes the tree up again with a new repository. Until that works nobody commits
// it, and nothing of it is lost.
func (v *Volume) repair(ctx context.Context, why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	v.Log.Error("the repository is broken: it is set aside, and fetched again", "error", why)
	err := v.machine.Stop(ctx, 0)
	if err != nil && !writeable.IsFinal(err) {
		// It runs on, and complains again.
		v.Log.Warn("the broken repository is still used: what was written could not be committed", "error", err)
		return
	}
	err = errors.Join(err, v.machine.close())
	v.Log.Info("the broken repository is not used any more", "error", err)
	v.exchange(nil)
	delay := firstRepair
	for {
		m, err := v.ready(ctx, func(m *machine) error { return m.Resume(ctx) })
		if err == nil {
			v.exchange(m)
			go m.Run()
			return
		}
		v.Report.Raise(report.CommitFailed, fmt.Sprintf("the repository of this node broke, and cannot be fetched again yet: %v", err))
		v.mu.Unlock()
		again := wait(ctx, delay)
		v.mu.Lock()
		if !again {
			return
		}
		delay = min(2*delay, lastRepair)
	}
}

func (v *Volume) endRepair() {
	v.machineMu.Lock()
	defer v.machineMu.Unlock()
	if v.stop != nil {
		v.stop()
	}
}

// wait waits; false: ctx ended before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Stop commits what is pending, pushes it once within a time, and follows the tree no
// more: nobody has it any longer. An error says that not all was committed, and that Stop
// has to be called again. With a repository that is broken and cannot be fetched, or a
// tree that is not the volume's, there is nothing to wait for: the next start commits.
func (v *Volume) Stop(ctx context.Context, within time.Duration) error {
	// A repair that fetches holds mu, and ends then.
	v.endRepair()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stop == nil {
		return nil
	}
	v.stop()
	// A repair lets go of mu where it waits, and ends then.
	for v.machine == nil {
		repaired := v.repaired
		v.mu.Unlock()
		<-repaired
		v.mu.Lock()
		if v.machine == nil {
			v.setStop(nil)
			return nil
		}
	}
	err := v.machine.Stop(ctx, within)
	switch {
	case err == nil:
		err = v.save(func(r *store.Record) { r.Position.Stopped = true })
	case writeable.IsFinal(err):
		v.Log.Error("the tree is not committed", "error", err)
		err = nil
	default:
		v.attend()
		return err
	}
	err = errors.Join(err, v.machine.close())
	v.exchange(nil)
	v.setStop(nil)
	return err
}
