package published

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/podinfo"
	"liken.sh/csicommon/target"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// Publication is a pod's wish for a volume.
type Publication struct {
	Handle string
	Target string // As the kubelet spells it.
	Kind   attributes.Kind
	// Attributes is the volume context, and Secret the publish's; empty: there is none.
	Attributes, Secret map[string]string
	// Options are those of the mount. Only that of a writeable volume can be written through.
	Options mount.Options
	// Group is the volume mount group, that a writeable volume's tree is given to; nil: none.
	Group *uint32
	Pod   podinfo.Pod
}

// Publish shows the volume at the target. When ctx ends before the repository is there, or
// is about to, the error wraps remote.ErrInProgress; the next call goes on. One that Leave
// ends gets ErrTooEarly. Of any other error the pod's owner is told. A repeated Publish is
// asked of Republish first.
func (v *Volumes) Publish(ctx context.Context, p Publication) error {
	// Until it is told of, too: an arrival that goes on reports to this volume, and the
	// cluster answers it.
	vol := v.enter(p)
	defer v.exit(vol)
	fetched := vol.report.Ends(report.FetchFailed)
	ctx, done := v.untilLeave(ctx)
	defer done()
	err := v.orLeaving(v.publish(ctx, vol, p))
	if err != nil {
		v.refuse(vol, p, err, fetched)
	}
	return err
}

func (v *Volumes) publish(ctx context.Context, vol *volume, p Publication) error {
	path, err := target.Canonical(p.Target)
	if err != nil {
		return err
	}
	if err := v.admit(path); err != nil {
		return err
	}
	read, err := v.settings.Rules.Parse(p.Kind, p.Attributes, p.Handle)
	if err != nil {
		return err
	}
	if err := v.checkKind(vol, p.Kind); err != nil {
		return err
	}
	shown, err := v.credentialFor(vol, p, read.URL)
	if err != nil {
		return err
	}
	if p.Kind == attributes.KindWriteable {
		return v.publishWritten(ctx, vol, read, shown, path, p)
	}
	p.Options.ReadOnly = true
	permit, limits := v.reach(p.Kind)
	attachment, err := v.settings.Followers.Attach(ctx, readonly.Volume{
		Record: vol.record(p), Attributes: read, Credential: shown,
		Permit: permit, Limits: limits, Report: vol.report,
	})
	if err != nil {
		return err
	}
	unlock, err := v.handles.Lock(ctx, p.Handle)
	if err != nil {
		return err
	}
	defer unlock()
	return v.show(vol, attachment, path, p)
}

// checkKind refuses a volume whose handle another kind of volume has: the record of a tree
// that was written is all that knows of it.
func (v *Volumes) checkKind(vol *volume, asked attributes.Kind) error {
	kept, err := v.settings.Store.Load(vol.handle)
	switch {
	case vol.kind != asked:
		return fmt.Errorf("%w: volume %q is a %s here", ErrOtherKind, vol.handle, vol.kind)
	case errors.Is(err, store.ErrNoRecord), errors.Is(err, store.ErrDamagedRecord):
	case err != nil:
		return err
	case (kept.Kind == store.Writeable) == (asked == attributes.KindWriteable):
		return nil
	case kept.Kind == store.Writeable:
		return fmt.Errorf("%w: it keeps the tree of a writeable volume %q; give this volume another handle", ErrOtherKind, vol.handle)
	}
	if _, err := v.settings.Store.Tree(vol.handle); err == nil && asked != attributes.KindWriteable {
		return fmt.Errorf("%w: it has a tree of volume %q without a record; give this volume another handle", ErrOtherKind, vol.handle)
	}
	return nil
}

// admit refuses a target where nothing can be mounted, before anything is fetched for it.
func (v *Volumes) admit(path string) error {
	err := v.targets.Check(path)
	if !errors.Is(err, target.ErrOccupied) {
		return err
	}
	// What is mounted may be this very volume.
	if ours, lookErr := v.targets.ShowsStore(path); lookErr != nil || ours {
		return lookErr
	}
	return err
}

// enter is the volume of a publish, until exit.
func (v *Volumes) enter(p Publication) *volume {
	return v.enterAs(p.Handle, p.Kind, pvOf(p.Target, p.Handle), p.Pod)
}

// enterAs is the volume of a call, until exit. The name is that of its PersistentVolume, or
// in its pod; empty: it is not known.
func (v *Volumes) enterAs(handle string, kind attributes.Kind, name string, pod podinfo.Pod) *volume {
	v.mu.Lock()
	defer v.mu.Unlock()
	vol := v.call(subjectOf(kind, handle, name, pod))
	vol.name(name, pod.Namespace)
	v.follow(vol, name)
	return vol
}

// call is the volume of a call, of which that is known if there is none yet. The caller holds
// mu.
func (v *Volumes) call(s report.Subject) *volume {
	vol := v.volumes[s.Handle]
	if vol != nil && vol.kind != s.Kind && vol.isIdle() {
		v.discard(vol) // It was refused, and another kind is asked for now.
		vol = nil
	}
	if vol == nil {
		vol = v.begin(s)
	}
	vol.calls++
	return vol
}

// begin reports a volume from now on. The caller holds mu.
func (v *Volumes) begin(s report.Subject) *volume {
	vol := &volume{
		handle: s.Handle, kind: s.Kind, subject: s, report: v.settings.Reports.Volume(s), learned: make(chan struct{}),
		places: map[string]*place{}, waiting: map[string]waiter{}, followed: map[string]bool{},
	}
	v.volumes[s.Handle] = vol
	return vol
}

// exit ends what enter began. Of a volume that did not get so far nothing stays.
func (v *Volumes) exit(vol *volume) {
	v.mu.Lock()
	defer v.mu.Unlock()
	vol.calls--
	v.forget(vol)
}

// forget ends a volume of which there is nothing. The caller holds mu.
func (v *Volumes) forget(vol *volume) {
	if v.volumes[vol.handle] == vol && vol.isIdle() && !vol.isAwaited() {
		v.discard(vol)
	}
}

// isIdle tells that there is nothing of the volume but perhaps pods that wait for it. The
// caller holds Volumes.mu.
func (vol *volume) isIdle() bool {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	return vol.calls == 0 && vol.attachment == nil && vol.writer == nil && len(vol.places) == 0
}

func (vol *volume) isAwaited() bool {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	return len(vol.waiting) > 0
}

// discard forgets a volume. The caller holds mu. The tree of one that was written is looked
// after without a gap: nothing that happens to its PersistentVolume now may be missed.
func (v *Volumes) discard(vol *volume) {
	delete(v.volumes, vol.handle)
	vol.mu.Lock()
	defer vol.mu.Unlock()
	for pv := range vol.followed {
		if vol.kind == attributes.KindWriteable {
			v.follows.add(pv, followedByReclaim)
		}
		v.follows.drop(pv, vol.handle)
	}
	vol.report.Close()
	if vol.kind == attributes.KindWriteable {
		v.pokeReclaim()
	}
}

// record is what is kept of the volume before it shows anything.
func (vol *volume) record(p Publication) store.Record {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	r := store.Record{Handle: p.Handle, Kind: store.ReadOnly, PV: vol.subject.Volume, Claim: vol.claim()}
	if p.Kind == attributes.KindInline {
		r.Kind, r.PV = store.Inline, ""
	}
	return r
}

// show mounts the volume's tree at the canonical path. The caller has the handle.
func (v *Volumes) show(vol *volume, a attachment, path string, p Publication) error {
	// Before the mount: a killed process must have left word of it. And before its tree is
	// looked for, which may have gone with the volume.
	err := a.Save(func(r *store.Record) {
		r.Targets = withTarget(r.Targets, store.Target{Path: path, Pod: store.Object(p.Pod), ReadOnly: p.Options.ReadOnly})
	})
	if errors.Is(err, store.ErrNoRecord) {
		return fmt.Errorf("%w: the volume was taken away meanwhile", ErrTooEarly)
	}
	if err != nil {
		return err
	}
	if err := v.mount(a.Dir(), path, p.Options); err != nil {
		return errors.Join(err, v.withdraw(vol, a, path))
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if vol.attachment == nil && vol.cluster.demand != "" {
		a.Demand() // It may have come just after the fetch.
	}
	vol.attachment = a
	vol.served(p.Target)
	pv := pvOf(p.Target, p.Handle)
	vol.settle(p.Target, &place{path: path, pv: pv, pod: p.Pod, mounted: true, isReadOnly: p.Options.ReadOnly})
	vol.bring(pv, p.Secret)
	vol.judgeSecrets()
	vol.isBare = len(p.Secret) == 0
	vol.report.Clear(report.TargetNotMounted, report.CredentialMalformed, report.TreeUnreadable)
	if p.Pod != (podinfo.Pod{}) {
		vol.report.AddPod(report.Pod(p.Pod))
	}
	v.consider(vol)
	return nil
}

// withdraw takes back the record of a target at which the volume could not be mounted.
func (v *Volumes) withdraw(vol *volume, a attachment, path string) error {
	vol.mu.Lock()
	isKnown, isElsewhere := vol.at(path) != nil, len(vol.places) > 0
	if !isElsewhere {
		vol.attachment = nil
	}
	vol.mu.Unlock()
	if isKnown {
		return nil // A pod runs whose target was lost.
	}
	if isElsewhere {
		return a.Save(func(r *store.Record) { r.Targets = withoutTarget(r.Targets, path) })
	}
	return a.Detach(context.Background())
}
