package nodevolume

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/worktree"
	"liken.sh/gitvolume/internal/writeable"
)

var (
	// ErrRefused says that the volume cannot be used as it is asked for, until somebody
	// changes what is asked.
	ErrRefused = errors.New("the volume is refused")
	// ErrVolatile says that no new tree is made where a reboot would take it.
	ErrVolatile = errors.New("a reboot would empty the store")
	// ErrUnfollowed says that the volume is left alone for a while, since the process ended
	// in work on it.
	ErrUnfollowed = errors.New("the volume is left alone for a while")
)

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
	// Root is what the root of a fresh tree is like, and Fresh what is in it, until Belong
	// says otherwise.
	Root  metadata.Seen
	Fresh metadata.Fresh
	// ForeignRoot says that the root's own mode and owner are neither recorded nor changed.
	ForeignRoot bool
	// Pending is told what would be committed while the volume is not armed; nil: nobody is.
	Pending func(lines []string)

	// Arming is what counts at first, and ScanEvery the time between two full scans.
	Arming    writeable.Arming
	ScanEvery time.Duration

	// Volatile is why no new tree is made in the store, as Store.Volatile gave it.
	Volatile string
	// Began is when the process began; zero: now. A volume in whose work it ended is left
	// alone for a while from then on.
	Began time.Time
}

// Volume is a writeable volume of this node. Its methods may be called by any goroutine:
// Keep, Publish, Resume, Linger and Stop one after the other; Arm and TakeCredential never
// wait for those, and TakeCredential not for a disk either.
type Volume struct {
	Settings
	repository store.Repository

	// mu is held while work on the tree begins or ends, which can take as long as a fetch.
	mu   sync.Mutex
	work *work // nil: there is none.
	// asideAt is when a repository was last set aside.
	asideAt time.Time

	// saveMu is held while the record is written, which waits for the disk.
	saveMu sync.Mutex
	// stateMu is held for moments.
	stateMu sync.Mutex
	record  store.Record
	arming  writeable.Arming
	machine *machine // The one to tell; nil: none.
	// keptUnder is the class of the record while Keep commits under that, whatever counts by
	// now; nil else.
	keptUnder *writeable.Arming
	// hurried is told when a repair is to be tried at once.
	hurried chan struct{}
}

// New loads what the store has of the volume, or begins a record. The error wraps
// ErrRefused if that is of another repository or branch.
func New(settings Settings) (*Volume, error) {
	v := &Volume{Settings: settings, arming: settings.Arming, hurried: make(chan struct{}, 1)}
	if v.Began.IsZero() {
		v.Began = time.Now()
	}
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
	v.saveMu.Lock()
	defer v.saveMu.Unlock()
	next := v.current()
	change(&next)
	if err := v.Store.Save(next); err != nil {
		return err
	}
	v.stateMu.Lock()
	defer v.stateMu.Unlock()
	v.record = next
	return nil
}

// class is the class that counts, as a record keeps it.
func (v *Volume) class() store.Class {
	v.stateMu.Lock()
	defer v.stateMu.Unlock()
	return classOf(v.arming)
}

// current is the record as it is kept.
func (v *Volume) current() store.Record {
	v.stateMu.Lock()
	defer v.stateMu.Unlock()
	return v.record
}

// Position is where the volume is.
func (v *Volume) Position() store.Position { return v.current().Position }

// Record is what is kept of the volume.
func (v *Volume) Record() store.Record { return v.current() }

// Save changes what is kept of the volume, durably: what is known of its claim, whether it
// is staged, and where it is published. The rest is the volume's own.
func (v *Volume) Save(change func(r *store.Record)) error { return v.save(change) }

// Belong says whose the tree is when it is taken up next: Owner, and the volume mount group
// that Publish gives it to; nil: none.
func (v *Volume) Belong(owner string, group *uint32) error {
	v.stateMu.Lock()
	v.Owner = owner
	v.Root, v.Fresh = freshFor(group)
	known := v.record.Group
	v.stateMu.Unlock()
	if known == group || known != nil && group != nil && *known == *group {
		return nil
	}
	return v.save(func(r *store.Record) { r.Group = group })
}

// freshFor is what the root of a fresh tree is like, and what is in it, by its group.
func freshFor(group *uint32) (metadata.Seen, metadata.Fresh) {
	root := metadata.Seen{
		Kind: metadata.Directory, Mode: worktree.WriteableRoot, Owner: uint32(os.Geteuid()), Group: uint32(os.Getegid()),
	}
	if group == nil {
		return root, metadata.Plain()
	}
	root.Mode, root.Group = worktree.GroupRoot, *group
	return root, worktree.GroupFresh()
}

// Arm has another class count, also after a restart.
func (v *Volume) Arm(arming writeable.Arming) error {
	v.arm(arming)
	// Whichever of two is written last, it is the one that counts then.
	return v.save(func(r *store.Record) { r.Class = v.class() })
}

func (v *Volume) arm(arming writeable.Arming) {
	v.stateMu.Lock()
	defer v.stateMu.Unlock()
	v.arming = arming
	if v.machine != nil {
		v.machine.Arm(arming)
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

// TakeCredential says that the access has another credential: what waits for it is tried
// at once.
func (v *Volume) TakeCredential() {
	v.stateMu.Lock()
	defer v.stateMu.Unlock()
	v.Report.Clear(report.CredentialMissing)
	if v.machine != nil {
		v.machine.TakeCredential()
	}
	select {
	case v.hurried <- struct{}{}:
	default:
	}
}
