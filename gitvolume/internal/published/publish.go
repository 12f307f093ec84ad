package published

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

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
	// Options are those of the mount, which is read-only whatever they say.
	Options mount.Options
	Pod     podinfo.Pod
}

// Publish shows the volume at the target. When ctx ends before the repository is there, or
// is about to, the error wraps remote.ErrInProgress; the next call goes on. Of any other
// error the pod's owner is told. A repeated Publish is asked of Republish first.
func (v *Volumes) Publish(ctx context.Context, p Publication) error {
	// Until it is told of, too: an arrival that goes on reports to this volume, and the
	// cluster answers it.
	defer v.exit(v.enter(p))
	err := v.publish(ctx, p)
	if err != nil {
		v.Refuse(p, err)
	}
	return err
}

func (v *Volumes) publish(ctx context.Context, p Publication) error {
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
	vol := v.enter(p)
	defer v.exit(vol)
	shown, err := v.credentialFor(vol, p, read.URL)
	if err != nil {
		return err
	}
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
	name := target.VolumeName(p.Target)
	v.mu.Lock()
	defer v.mu.Unlock()
	vol := v.volumes[p.Handle]
	if vol == nil {
		vol = v.begin(p.Handle, p.Kind, subjectOf(p.Kind, p.Handle, name, p.Pod))
	}
	vol.calls++
	v.follow(vol, name)
	return vol
}

// begin reports a volume from now on. The caller holds mu.
func (v *Volumes) begin(handle string, kind attributes.Kind, s report.Subject) *volume {
	vol := &volume{
		handle: handle, kind: kind, subject: s, report: v.settings.Reports.Volume(s),
		places: map[string]*place{}, waiting: map[string]waiter{}, followed: map[string]bool{},
	}
	v.volumes[handle] = vol
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
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if vol.calls > 0 || vol.attachment != nil || len(vol.places)+len(vol.waiting) > 0 || v.volumes[vol.handle] != vol {
		return
	}
	delete(v.volumes, vol.handle)
	for pv := range vol.followed {
		v.settings.Cluster.Unfollow(pv)
	}
	vol.report.Close()
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
func (v *Volumes) show(vol *volume, a *readonly.Attachment, path string, p Publication) error {
	// Before the mount: a killed process must have left word of it. And before its tree is
	// looked for, which may have gone with the volume.
	err := a.Save(func(r *store.Record) {
		r.Targets = withTarget(r.Targets, store.Target{Path: path, Pod: store.Object(p.Pod), ReadOnly: true})
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
	vol.settle(p.Target, &place{path: path, pod: p.Pod, mounted: true})
	vol.secret = maps.Clone(p.Secret)
	vol.report.Clear(report.TargetNotMounted, report.CredentialMalformed, report.TreeUnreadable)
	if p.Pod != (podinfo.Pod{}) {
		vol.report.AddPod(report.Pod(p.Pod))
	}
	v.consider(vol)
	return nil
}

// mount mounts the tree, unless it is there. What else of the store is there goes: it is
// what an earlier process left of a checkout that is no more.
func (v *Volumes) mount(dir, path string, options mount.Options) error {
	tree, err := openTree(dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	if v.shows(path, dir) {
		return nil
	}
	ours, err := v.targets.ShowsStore(path)
	if err == nil && ours {
		_, err = v.targets.TakeOff(path, true)
	}
	if err != nil {
		return err
	}
	options.ReadOnly = true
	return v.targets.Show(tree, path, options)
}

// shows tells whether a tree is what is mounted at the canonical path, and cannot be
// written there.
func (v *Volumes) shows(path, dir string) bool {
	parent, err := openTree(filepath.Dir(dir))
	if err != nil {
		return false
	}
	defer parent.Close()
	if m, shown := v.settings.Mounts.Shows(path, parent, filepath.Base(dir)); shown {
		return m.ReadOnly
	}
	// It cannot be told so cheaply on every kernel.
	tree, err := openTree(dir)
	if err != nil {
		return false
	}
	defer tree.Close()
	at, err := v.settings.Mounts.Locate(tree)
	if err != nil {
		return false
	}
	m, mounted, err := v.settings.Mounts.At(path)
	return err == nil && mounted && !m.Deleted && m.ReadOnly && m.Location == at
}

// withdraw takes back the record of a target at which the volume could not be mounted.
func (v *Volumes) withdraw(vol *volume, a *readonly.Attachment, path string) error {
	vol.mu.Lock()
	isElsewhere := len(vol.places) > 0
	if !isElsewhere {
		vol.attachment = nil
	}
	vol.mu.Unlock()
	if isElsewhere {
		return a.Save(func(r *store.Record) { r.Targets = withoutTarget(r.Targets, path) })
	}
	return a.Detach(context.Background())
}

func withTarget(all []store.Target, one store.Target) []store.Target {
	return append(withoutTarget(all, one.Path), one)
}

func withoutTarget(all []store.Target, path string) []store.Target {
	return slices.DeleteFunc(slices.Clone(all), func(t store.Target) bool { return t.Path == path })
}

// openTree opens a directory of the store as a place, without following a link.
func openTree(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}
