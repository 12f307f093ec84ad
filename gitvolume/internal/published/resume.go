package published

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/csicommon/podinfo"
	"liken.sh/csicommon/target"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// Resume has the volumes followed that the process before this one showed and that still
// are mounted. It comes before any other call and touches no mount. Volumes of which
// nothing is mounted, as after a reboot, stay as they were left: the kubelet publishes them
// again, or takes them away.
func (v *Volumes) Resume(context.Context) error {
	records, problems, err := v.settings.Store.All()
	if err != nil {
		return fmt.Errorf("resume the volumes: %w", err)
	}
	for _, problem := range problems {
		v.settings.Log.Error("the record of a volume cannot be used", "volume", problem.Volume, "error", problem.Err)
	}
	var shown []readonly.Volume
	for _, r := range records {
		if r.Kind == store.Writeable || !v.anyMounted(r) {
			continue
		}
		shown = append(shown, v.revive(r))
	}
	resumed, err := v.settings.Followers.Resume(shown)
	if err != nil {
		v.settings.Log.Error("volumes are shown that are not followed", "error", err)
	}
	for _, r := range shown {
		v.resumed(r, resumed[r.Record.Handle])
	}
	return nil
}

// anyMounted tells whether the volume is mounted where its record says.
func (v *Volumes) anyMounted(r store.Record) bool {
	for _, t := range r.Targets {
		ours, err := v.targets.ShowsStore(t.Path)
		if err != nil {
			v.settings.Log.Error("whether a volume is still shown cannot be told", "volume", r.Handle, "target", t.Path, "error", err)
		}
		if ours || err != nil {
			return true
		}
	}
	return false
}

// revive reports a volume of a record.
func (v *Volumes) revive(r store.Record) readonly.Volume {
	kind, name := attributes.KindReadOnlyClaim, r.PV
	if r.Kind == store.Inline {
		kind, name = attributes.KindInline, target.VolumeName(r.Targets[0].Path)
	}
	s := report.Subject{
		Kind: kind, Handle: r.Handle, Volume: name,
		Namespace: r.Claim.Namespace, Claim: r.Claim.Name, ClaimUID: r.Claim.UID,
	}
	if s.Namespace == "" {
		s.Namespace = r.Targets[0].Pod.Namespace
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	vol := v.begin(r.Handle, kind, s)
	v.follow(vol, r.PV)
	permit, limits := v.reach(kind)
	return readonly.Volume{Record: r, Permit: permit, Limits: limits, Report: vol.report}
}

// resumed notes where a volume is mounted; a is nil when it is not followed.
func (v *Volumes) resumed(r readonly.Volume, a *readonly.Attachment) {
	vol := v.known(r.Record.Handle)
	if a == nil {
		vol.report.Raise(report.TreeUnreadable, "what its pods see is not followed any more, because the node's files of it are gone or damaged: "+
			"the next publish shows the volume anew, for which its pods have to be started again")
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	vol.attachment = a
	for _, t := range r.Record.Targets {
		p := &place{path: t.Path, pod: podinfo.Pod(t.Pod), mounted: a != nil && v.shows(t.Path, a.Dir())}
		vol.settle(t.Path, p)
		if p.pod != (podinfo.Pod{}) {
			vol.report.AddPod(report.Pod(p.pod))
		}
	}
	v.consider(vol)
}

// drop removes a volume of which no target can be there any more: the kubelet has removed
// what is around them, and will not ask for it again.
func (v *Volumes) drop(ctx context.Context, r store.Record) error {
	if v.known(r.Handle) != nil {
		return nil
	}
	for _, t := range r.Targets {
		if !isGone(t.Path) {
			return nil
		}
	}
	unlock, err := v.handles.Lock(ctx, r.Handle)
	if err != nil {
		return err
	}
	defer unlock()
	if v.known(r.Handle) != nil {
		return nil
	}
	v.settings.Log.Info("a volume is forgotten whose pods are gone", "volume", r.Handle)
	if err := v.settings.Followers.Detach(ctx, r.Handle); err != nil && !errors.Is(err, store.ErrNoRecord) {
		return err
	}
	return nil
}
