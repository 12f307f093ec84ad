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
// again, or takes them away; see keepTrees.
func (v *Volumes) Resume(ctx context.Context) error {
	records, problems, err := v.settings.Store.All()
	if err != nil {
		return fmt.Errorf("resume the volumes: %w", err)
	}
	for _, problem := range problems {
		v.settings.Log.Error("the record of a volume cannot be used", "volume", problem.Volume, "error", problem.Err)
	}
	var shown []readonly.Volume
	for _, r := range records {
		switch {
		case !v.anyMounted(r):
		case r.Kind == store.Writeable:
			v.resumeWritten(ctx, r)
		default:
			shown = append(shown, v.revive(r))
		}
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
	at, err := v.shownAt(r, "")
	if err != nil {
		v.settings.Log.Error("whether a volume is still shown cannot be told", "volume", r.Handle, "target", at.Path, "error", err)
	}
	return at != nil
}

// enterRecord is the volume of a record, until exit.
func (v *Volumes) enterRecord(r store.Record) *volume {
	kind, name := attributes.KindReadOnlyClaim, r.PV
	switch r.Kind {
	case store.Writeable:
		kind = attributes.KindWriteable
	case store.Inline:
		kind, name = attributes.KindInline, target.VolumeName(r.Targets[0].Path)
	}
	s := report.Subject{
		Kind: kind, Handle: r.Handle, Volume: name,
		Namespace: r.Claim.Namespace, Claim: r.Claim.Name, ClaimUID: r.Claim.UID,
	}
	if s.Namespace == "" && len(r.Targets) > 0 {
		s.Namespace = r.Targets[0].Pod.Namespace
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	vol := v.call(s)
	v.follow(vol, r.PV)
	return vol
}

// revive reports a read-only volume of a record, until resumed.
func (v *Volumes) revive(r store.Record) readonly.Volume {
	vol := v.enterRecord(r)
	permit, limits := v.reach(vol.kind)
	return readonly.Volume{Record: r, Permit: permit, Limits: limits, Report: vol.report}
}

// resumed notes where a volume is mounted; a is nil when it is not followed.
func (v *Volumes) resumed(r readonly.Volume, a *readonly.Attachment) {
	vol := v.known(r.Record.Handle)
	defer v.exit(vol)
	if a == nil {
		vol.report.Raise(report.TreeUnreadable, "what its pods see is not followed any more, because the node's files of it are gone or damaged: "+
			"the next publish shows the volume anew, for which its pods have to be started again")
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if a == nil {
		v.settleAll(vol, r.Record, nil)
		return
	}
	v.settleAll(vol, r.Record, a)
}

// settleAll notes where a volume is mounted by its record; a is nil when it is not
// followed. The caller holds vol.mu.
func (v *Volumes) settleAll(vol *volume, r store.Record, a attachment) {
	vol.attachment = a
	for _, t := range r.Targets {
		p := placeOf(r.Handle, t)
		p.mounted = a != nil && v.isMountedAt(t.Path, a.Dir(), t.ReadOnly)
		vol.settle(t.Path, p)
		if p.pod != (podinfo.Pod{}) {
			vol.report.AddPod(report.Pod(p.pod))
		}
	}
	v.consider(vol)
}

// resumeWritten has a writeable volume be followed that a pod has.
func (v *Volumes) resumeWritten(ctx context.Context, r store.Record) {
	vol := v.enterRecord(r)
	defer v.exit(vol)
	w, err := v.reopened(ctx, vol, r)
	if err == nil {
		vol.tell(r)
		err = w.Resume(ctx)
	}
	if err != nil {
		v.settings.Log.Error("a volume is shown that is not followed", "volume", r.Handle, "error", err)
		return
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	v.settleAll(vol, r, w)
}

// keepTrees commits the trees that nobody has, as a crash may have left them, and of which
// no call has come since the start.
func (v *Volumes) keepTrees(ctx context.Context) {
	records, _, err := v.settings.Store.All()
	if err != nil {
		v.settings.Log.Error("what was written before the start is not looked for", "error", err)
		return
	}
	for _, r := range records {
		if r.Kind != store.Writeable || ctx.Err() != nil {
			continue
		}
		if err := v.keepTree(ctx, r.Handle); err != nil && ctx.Err() == nil {
			v.settings.Log.Error("what was written before the start is not committed", "volume", r.Handle, "error", err)
		}
	}
}

func (v *Volumes) keepTree(ctx context.Context, handle string) error {
	unlock, err := v.handles.Lock(ctx, handle)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := v.recorded(handle)
	if err != nil || r.Kind != store.Writeable || v.known(handle) != nil {
		return err
	}
	vol := v.enterRecord(r)
	defer v.exit(vol)
	w, err := v.reopened(ctx, vol, r)
	if err != nil {
		return err
	}
	if err := w.Keep(ctx); err != nil {
		return errors.Join(err, v.close(ctx, vol, w))
	}
	if p := w.Record().Position; p.HasUnpushed() {
		v.settings.Log.Warn("commits of a volume are on this node alone; its next start here pushes them", "volume", handle, "tip", p.Tip.String())
	}
	return v.close(ctx, vol, w)
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
