package nodevolume

import (
	"context"
	"fmt"
	"math/rand/v2"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/writeable"
)

// machine is the state machine with the repository that it has open.
type machine struct {
	*writeable.Volume
	open     *history.Repository
	instance store.Identity
	// broken is told that the repository is, and ended is closed when the machine ran and
	// does no more.
	broken chan error
	ended  chan struct{}
}

// newMachine opens the repository, which is used meanwhile, and makes a state machine.
func (v *Volume) newMachine(ctx context.Context) (*machine, error) {
	release, err := v.repository.Use(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	m := &machine{broken: make(chan error, 1), ended: make(chan struct{})}
	if m.instance, err = v.repository.Instance(); err != nil {
		return nil, err
	}
	if m.open, err = history.Open(v.repository.Dir()); err != nil {
		return nil, fmt.Errorf("open the repository: %w", store.BlameForOpening(v.repository.Dir(), err))
	}
	own := func(a store.Anchor) string { return store.VolumeRef(v.handle(), a) }
	side := attributes.SideBranch(v.Branch, v.handle())
	v.stateMu.Lock()
	defer v.stateMu.Unlock()
	m.Volume = writeable.New(writeable.Settings{
		Owner: v.Owner, Dir: v.Dir, Root: v.Root, ForeignRoot: v.ForeignRoot, Fresh: v.Fresh, Group: v.record.Group,
		Ref: v.Branch, Side: side,
		Refs: writeable.Refs{
			Tip: own(store.AnchorTip), Next: own(store.AnchorNext),
			Metadata: own(store.AnchorMetadata), NextMetadata: own(store.AnchorNextMetadata), Agreed: own(store.AnchorAgreed),
			Upstream: store.RemoteRef(v.Branch), UpstreamSide: store.RemoteRef(side), UpstreamMetadata: store.RemoteRef(history.MetadataRef),
		},
		Repository: m.open, Merger: v.Merges(v.repository.Dir()), Remote: v.Access, Watches: watches{v.Watches},
		Keeper: keeper{v}, Report: v.Report, Durations: v.Reports, Log: v.Log,
		Arming: v.inForce(), Position: v.record.Position, ScanEvery: v.ScanEvery, Jitter: rand.Float64,
		Pending: v.Pending,
		Use:     func(ctx context.Context) (func(), error) { return v.use(ctx, m.instance) },
		Broken: func(err error) {
			select {
			case m.broken <- err:
			default:
			}
		},
	})
	v.machine = m
	return m, nil
}

// inForce is the class that a machine begins with. The caller holds stateMu.
func (v *Volume) inForce() writeable.Arming {
	if v.keptUnder != nil {
		return *v.keptUnder
	}
	return v.arming
}

// use keeps the repository from being set aside, if it still is that instance.
func (v *Volume) use(ctx context.Context, instance store.Identity) (release func(), err error) {
	unguard, err := v.repository.Use(ctx)
	if err != nil {
		return nil, err
	}
	now, err := v.repository.Instance()
	if err == nil && now != instance {
		err = fmt.Errorf("the repository was set aside: %w", history.ErrMissing)
	}
	if err != nil {
		unguard()
		return nil, err
	}
	return func() {
		v.repository.Written()
		unguard()
	}, nil
}

// follow runs the machine in a goroutine of its own.
func (m *machine) follow() {
	go func() {
		defer close(m.ended)
		m.Run()
	}()
}

// closeMachine frees what a machine holds that does not run.
func (v *Volume) closeMachine(m *machine) error {
	v.stateMu.Lock()
	if v.machine == m {
		v.machine = nil
	}
	v.stateMu.Unlock()
	err := m.Close()
	m.open.Close()
	return err
}

// watches are the process's watched trees, as the state machine sees them.
type watches struct{ trees *watch.Trees }

// Start implements writeable.Watches.
func (w watches) Start(root string) (writeable.Watch, error) {
	started, err := w.trees.Start(root)
	if err != nil {
		return nil, err
	}
	return started, nil
}
