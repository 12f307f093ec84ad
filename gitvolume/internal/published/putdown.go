package published

import (
	"context"
	"fmt"
	"time"

	"liken.sh/csicommon/handle"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/written"
)

// lingeringCredential is how long the credential of a volume that is not staged is kept
// while commits wait for their push.
const lingeringCredential = time.Hour

// quitWritten has a writeable volume be committed whose canonical target is no mount any
// more. It is done when the record has no such target: until then a repetition resumes it.
// The caller has the handle.
func (v *Volumes) quitWritten(ctx context.Context, r store.Record, path string) error {
	if !hasTarget(r, path) {
		v.giveUp(r.Handle, path)
		return nil
	}
	vol := v.enterRecord(r)
	defer v.exit(vol)
	w, err := v.reopened(ctx, vol, r)
	if err != nil {
		return err
	}
	if vol.isElsewhere(path) {
		// A pod has the tree. This target is one that was given up before.
		return w.Save(func(kept *store.Record) { kept.Targets = withoutTarget(kept.Targets, path) })
	}
	vol.tell(r)
	if err := v.putDown(ctx, vol, w); err != nil {
		return err
	}
	if w.Record().Staged {
		return nil
	}
	return v.letGo(ctx, vol, w)
}

// giveUp forgets a pod that was never given the volume.
func (v *Volumes) giveUp(volume, path string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if vol := v.volumes[volume]; vol != nil {
		vol.left(path)
		v.forget(vol)
	}
}

// isElsewhere tells whether the volume is mounted at another target than the canonical one.
func (vol *volume) isElsewhere(path string) bool {
	for _, p := range vol.each() {
		if p.mounted && p.path != path {
			return true
		}
	}
	return false
}

// tell has the pods of a record know what becomes of a volume that is not followed.
func (vol *volume) tell(r store.Record) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	for _, t := range r.Targets {
		if t.Pod == (store.Object{}) || vol.attachment != nil {
			continue
		}
		vol.settle(t.Path, placeOf(r.Handle, t))
		vol.report.AddPod(report.Pod(t.Pod))
	}
}

// putDown commits and pushes what the pods wrote that had the volume, and forgets their
// targets, of which none is a mount. The caller has the handle.
func (v *Volumes) putDown(ctx context.Context, vol *volume, w *written.Volume) error {
	if len(w.Record().Targets) == 0 && !w.IsFollowed() {
		return nil
	}
	for _, p := range vol.each() {
		vol.note(p.path, false)
	}
	if err := w.Stop(ctx); err != nil {
		return err
	}
	if err := w.Save(func(r *store.Record) { r.Targets = nil }); err != nil {
		return err
	}
	for _, p := range vol.each() {
		vol.left(p.path)
	}
	v.meter.Forget(w.Dir())
	vol.mu.Lock()
	defer vol.mu.Unlock()
	vol.attachment = nil
	vol.unbring()
	vol.report.Clear(report.TargetNotMounted)
	return nil
}

// unstageWritten unstages the volume, if it is writeable.
func (v *Volumes) unstageWritten(ctx context.Context, volume string) error {
	if handle.Check(volume) != nil {
		return nil
	}
	unlock, err := v.handles.Lock(ctx, volume)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := v.recorded(volume)
	if err != nil || r.Kind != store.Writeable {
		return err
	}
	if v.known(volume) == nil && !r.Staged && len(r.Targets) == 0 {
		return nil
	}
	vol := v.enterRecord(r)
	defer v.exit(vol)
	w, err := v.reopened(ctx, vol, r)
	if err != nil {
		return err
	}
	if err := v.checkUnheld(r, ""); err != nil {
		return fmt.Errorf("%w; unpublish it first", err)
	}
	vol.tell(r)
	if err := v.putDown(ctx, vol, w); err != nil {
		return err
	}
	if err := w.Unstage(ctx); err != nil {
		return err
	}
	return v.letGo(ctx, vol, w)
}

// letGo ends a volume that is neither staged nor published, or has its commits be pushed
// for a while first. The caller has the handle.
func (v *Volumes) letGo(ctx context.Context, vol *volume, w *written.Volume) error {
	if w.Lingers() {
		vol.mu.Lock()
		vol.lingersUntil = time.Now().Add(lingeringCredential)
		pv := vol.subject.Volume
		vol.mu.Unlock()
		// Who is told of its end from now on drops the credential; nobody did before.
		if !v.isGone(pv) {
			return nil
		}
		w.DropCredential()
	}
	return v.close(ctx, vol, w)
}

// rest ends a volume that nobody has, when all of it is pushed or its time is over.
func (v *Volumes) rest(ctx context.Context, vol *volume, now time.Time) error {
	if !vol.isResting(now) {
		return nil
	}
	unlock, err := v.handles.Lock(ctx, vol.handle)
	if err != nil {
		return err
	}
	defer unlock()
	vol.mu.Lock()
	w := vol.writer
	vol.mu.Unlock()
	if w == nil || !vol.isResting(now) {
		return nil
	}
	return v.close(ctx, vol, w)
}

func (vol *volume) isResting(now time.Time) bool {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if vol.writer == nil || vol.lingersUntil.IsZero() {
		return false
	}
	return now.After(vol.lingersUntil) || !vol.writer.Lingers()
}
