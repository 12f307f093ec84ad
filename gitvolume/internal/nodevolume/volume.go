package nodevolume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/writeable"
)

// ErrRefused says that the volume cannot be used as it is asked for, until somebody
// changes what is asked.
var ErrRefused = errors.New("the volume is refused")

// Merges makes the merger of a repository; (*remote.Command).Merger does.
type Merges func(dir string) history.Merger

// Settings are what a Volume needs.
type Settings struct {
	Store   *store.Store
	Merges  Merges
	Access  *access.Access
	Watches *watch.Trees
	Report  *report.Volume
	Reports *report.Reports
	Log     *slog.Logger

	// Record is what is asked for: the handle, the URL, the ref and what is known of the
	// claim. What the store has of the volume comes from there.
	Record store.Record
	// Owner is named in the trailer of each commit: "<namespace>/<claim>".
	Owner string
	// Branch is the full name of the ref.
	Branch string
	// Dir is the tree, if it is not the store's own.
	Dir string
	// Root is what the root of a fresh tree is like, and Fresh what is in it.
	Root  metadata.Seen
	Fresh metadata.Fresh
	// ForeignRoot says that the root's own mode and owner are neither recorded nor changed.
	ForeignRoot bool
	// Pending is told what would be committed while the volume is not armed; nil: nobody is.
	Pending func(lines []string)

	// Arming is what counts at first, and ScanEvery the time between two full scans.
	Arming    writeable.Arming
	ScanEvery time.Duration
}

// Volume is a writeable volume of this node. Publish or Resume comes first. Its methods
// may be called by any goroutine; Arm and TakeCredential never wait.
type Volume struct {
	Settings
	repository store.Repository

	// mu is held while the state machine is exchanged, which may take as long as a fetch.
	mu sync.Mutex
	// repaired is closed when nothing is repaired any more.
	repaired chan struct{}
	broken   chan error

	// machineMu is held for a moment only: who arms the volume or brings a credential does
	// not wait for mu, nor does the wish to stop. What is below is written while mu is held
	// too, but for arming and armings.
	machineMu sync.Mutex
	machine   *machine
	// stop ends the wish to repair.
	stop context.CancelFunc
	// arming is what counts now, and armings how often another came.
	arming  writeable.Arming
	armings int

	recordMu sync.Mutex
	record   store.Record
}

// machine is the state machine with the repository that it has open.
type machine struct {
	*writeable.Volume
	open     *history.Repository
	instance store.Identity
	// armings is of which arming the machine was made.
	armings int
}

// New loads what the store has of the volume, or begins a record. The error wraps
// ErrRefused if that is of another repository or branch.
func New(settings Settings) (*Volume, error) {
	v := &Volume{Settings: settings, arming: settings.Arming, broken: make(chan error, 1)}
	v.repository = settings.Store.Repository(settings.Record.URL, 0)
	if v.Dir == "" {
		v.Dir = settings.Store.TreeDir(settings.Record.Handle)
	}
	kept, err := settings.Store.Load(settings.Record.Handle)
	switch {
	case errors.Is(err, store.ErrNoRecord) || errors.Is(err, store.ErrDamagedRecord):
		v.record = settings.Record
	case err != nil:
		return nil, err
	case kept.Position == (store.Position{}):
		// Nothing was ever made of it: what was asked for then may have been a mistake.
		v.record = settings.Record
	case kept.URL != settings.Record.URL || kept.Ref != settings.Record.Ref:
		return nil, fmt.Errorf("%w: this node keeps a tree of volume %q that is of %s of %s; it is never made one of %s of %s: "+
			"give the volume another handle, or remove what this node keeps of it", ErrRefused,
			settings.Record.Handle, kept.Ref, kept.URL, settings.Record.Ref, settings.Record.URL)
	default:
		v.record = kept
	}
	return v, nil
}

func (v *Volume) handle() string { return v.Settings.Record.Handle }

// save changes the record, durably.
func (v *Volume) save(change func(r *store.Record)) error {
	v.recordMu.Lock()
	defer v.recordMu.Unlock()
	next := v.record
	change(&next)
	if err := v.Store.Save(next); err != nil {
		return err
	}
	v.record = next
	return nil
}

// current is the record as it is kept.
func (v *Volume) current() store.Record {
	v.recordMu.Lock()
	defer v.recordMu.Unlock()
	return v.record
}

// Position is where the volume is.
func (v *Volume) Position() store.Position { return v.current().Position }

// newMachine opens the repository, which is used meanwhile, and makes a state machine.
func (v *Volume) newMachine(ctx context.Context) (*machine, error) {
	release, err := v.repository.Use(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	m := &machine{}
	if m.instance, err = v.repository.Instance(); err != nil {
		return nil, err
	}
	if m.open, err = history.Open(v.repository.Dir()); err != nil {
		return nil, fmt.Errorf("open the repository: %w: %w", history.ErrDamaged, err)
	}
	var arming writeable.Arming
	arming, m.armings = v.armed()
	own := func(a store.Anchor) string { return store.VolumeRef(v.handle(), a) }
	side := attributes.SideBranch(v.Branch, v.handle())
	m.Volume = writeable.New(writeable.Settings{
		Owner: v.Owner, Dir: v.Dir, Root: v.Root, ForeignRoot: v.ForeignRoot, Fresh: v.Fresh, Group: v.current().Group,
		Ref: v.Branch, Side: side,
		Refs: writeable.Refs{
			Tip: own(store.AnchorTip), Next: own(store.AnchorNext), Metadata: own(store.AnchorMetadata), Agreed: own(store.AnchorAgreed),
			Upstream: store.RemoteRef(v.Branch), UpstreamSide: store.RemoteRef(side), UpstreamMetadata: store.RemoteRef(history.MetadataRef),
		},
		Repository: m.open, Merger: v.Merges(v.repository.Dir()), Remote: v.Access, Watches: watches{v.Watches},
		Keeper: keeper{v}, Report: v.Report, Durations: v.Reports, Log: v.Log,
		Arming: arming, Position: v.Position(), ScanEvery: v.ScanEvery, Jitter: rand.Float64,
		Pending: v.Pending,
		Use:     func(ctx context.Context) (func(), error) { return v.use(ctx, m.instance) },
		Broken: func(err error) {
			select {
			case v.broken <- err:
			default:
			}
		},
	})
	return m, nil
}

// use keeps the repository from being set aside, if it still is that instance.
func (v *Volume) use(ctx context.Context, instance store.Identity) (release func(), err error) {
	used, err := v.repository.Use(ctx)
	if err != nil {
		return nil, err
	}
	now, err := v.repository.Instance()
	if err == nil && now != instance {
		err = fmt.Errorf("the repository was set aside: %w", history.ErrMissing)
	}
	if err != nil {
		used()
		return nil, err
	}
	return func() {
		v.repository.Written()
		used()
	}, nil
}

// close frees what a machine holds.
func (m *machine) close() error {
	err := m.Volume.Close()
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

// Arm has another class count, also after a restart.
func (v *Volume) Arm(arming writeable.Arming) error {
	v.machineMu.Lock()
	v.arming = arming
	v.armings++
	if v.machine != nil {
		v.machine.armings = v.armings
		v.machine.Arm(arming)
	}
	v.machineMu.Unlock()
	return v.save(v.recordClass)
}

// armed is the arming that counts now, and how many there were before it.
func (v *Volume) armed() (writeable.Arming, int) {
	v.machineMu.Lock()
	defer v.machineMu.Unlock()
	return v.arming, v.armings
}

// recordClass has a record say which class is in force now.
func (v *Volume) recordClass(r *store.Record) {
	arming, _ := v.armed()
	r.Class = classOf(arming)
}

// exchange makes a machine the one that is told things; nil: none is.
func (v *Volume) exchange(m *machine) {
	v.machineMu.Lock()
	defer v.machineMu.Unlock()
	v.machine = m
	if m != nil && m.armings != v.armings {
		m.Arm(v.arming) // It came while the machine was made.
	}
}

// classOf is an arming as a record keeps it.
func classOf(arming writeable.Arming) store.Class {
	class := store.Class{Name: arming.Class}
	if arming.Unarmed == nil {
		class.Policy = &arming.Policy
	}
	return class
}

// TakeCredential says that the access has another credential.
func (v *Volume) TakeCredential() {
	v.machineMu.Lock()
	defer v.machineMu.Unlock()
	if v.machine != nil {
		v.machine.TakeCredential()
	}
}
