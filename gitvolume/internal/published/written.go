package published

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/written"
)

// answerPatience is how long a publish waits until the cluster has told whose the volume
// is, which it does in a moment, or not at all for a while.
const answerPatience = 5 * time.Second

// publishWritten shows a writeable volume, which no other target may have. The credential is
// nil if none came.
func (v *Volumes) publishWritten(ctx context.Context, vol *volume, read attributes.Volume, given *credential.Credential, path string, p Publication) error {
	claim, err := v.claimOf(ctx, vol)
	if err != nil {
		return err
	}
	unlock, err := v.handles.Lock(ctx, p.Handle)
	if err != nil {
		return err
	}
	defer unlock()
	w, err := v.writerOf(ctx, vol, read)
	if err != nil {
		return err
	}
	if err := v.checkFree(w, path, p); err != nil {
		return err
	}
	if given != nil {
		w.TakeCredential(given)
	}
	vol.stays()
	if !v.isAgain(vol, path, p) {
		err = v.takeUp(ctx, vol, w, claim, p)
	}
	if errors.Is(err, access.ErrNoCredential) {
		return fmt.Errorf("%w: the credential came with the volume's stage, and the driver was restarted since; "+
			"name the Secret in the PersistentVolume's nodePublishSecretRef too: %w", ErrSecrets, err)
	}
	if err != nil {
		return err
	}
	return v.show(vol, w, path, p)
}

// takeUp brings the tree to where a pod may have it.
func (v *Volumes) takeUp(ctx context.Context, vol *volume, w *written.Volume, claim store.Object, p Publication) error {
	if w.IsFollowed() {
		// Whoever had it before is gone without a word.
		if err := v.putDown(ctx, vol, w); err != nil {
			return err
		}
	}
	vol.awaits(p)
	reading, cancel := context.WithTimeout(ctx, classPatience)
	v.rearm(reading, vol)
	cancel()
	if err := w.Publish(ctx, written.OwnerOf(claim, p.Handle), p.Group); err != nil {
		return err
	}
	if err := vol.keepTold(w); err != nil || len(w.Record().Targets) == 0 {
		return err
	}
	// Those of the record were left by a reboot.
	return w.Save(func(r *store.Record) { r.Targets = nil })
}

// keepTold keeps in the record what the cluster has told.
func (vol *volume) keepTold(w *written.Volume) error {
	vol.mu.Lock()
	isKnown, told := vol.cluster.isKnown, vol.told()
	vol.mu.Unlock()
	if !isKnown {
		return nil
	}
	return told.keepIn(w)
}

// awaits has the pod know what becomes of the volume from here on.
func (vol *volume) awaits(p Publication) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	vol.waiting[p.Target] = waiter{pod: p.Pod, since: time.Now()}
	if p.Pod != (podinfo.Pod{}) {
		vol.report.AddPod(report.Pod(p.Pod))
	}
}

// claimOf is the volume's claim, by which its commits are known to be its own: not before
// the cluster has told it is one begun.
func (v *Volumes) claimOf(ctx context.Context, vol *volume) (store.Object, error) {
	if v.hasCluster() && v.checkForeign(vol) == nil {
		timer := time.NewTimer(answerPatience)
		defer timer.Stop()
		select {
		case <-vol.learned:
		case <-timer.C:
		case <-ctx.Done():
			return store.Object{}, ctx.Err()
		}
	}
	vol.mu.Lock()
	claim := vol.claim()
	vol.mu.Unlock()
	if claim.Name != "" || !v.hasCluster() {
		return claim, nil
	}
	if kept, err := v.settings.Store.Load(vol.handle); err == nil && kept.Claim.Name != "" {
		return kept.Claim, nil
	}
	if err := v.checkForeign(vol); err != nil {
		return store.Object{}, fmt.Errorf("whose claim the volume is: %w", err)
	}
	return store.Object{}, fmt.Errorf("%w: the cluster has not told yet whose claim the volume is", ErrTooEarly)
}

// writerOf is what the volume is written by; made if there is none. The caller has the
// handle.
func (v *Volumes) writerOf(ctx context.Context, vol *volume, read attributes.Volume) (*written.Volume, error) {
	vol.mu.Lock()
	w := vol.writer
	vol.mu.Unlock()
	if w != nil && w.Attributes() != read {
		if w.IsFollowed() {
			return nil, fmt.Errorf("%w: volume %q is %s of %s while a pod has it", ErrOtherKind, vol.handle, w.Attributes().Ref, w.Attributes().URL.Repo())
		}
		// What was asked for before was never begun, or is going to be refused.
		if err := v.close(ctx, vol, w); err != nil {
			return nil, err
		}
		w = nil
	}
	if w != nil {
		return w, nil
	}
	permit, limits := v.reach(vol.kind)
	w, err := v.settings.Written.Open(written.Asked{
		Handle: vol.handle, Attributes: read, Permit: permit, Limits: limits, Report: vol.report,
	})
	if err != nil {
		return nil, err
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	vol.writer = w
	vol.classIsDone = false // It counted for another one: this one has what its record says.
	return w, nil
}

// reopened is what a volume is written by of which the store has the record.
func (v *Volumes) reopened(ctx context.Context, vol *volume, r store.Record) (*written.Volume, error) {
	read, err := written.AttributesOf(r)
	if err != nil {
		return nil, err
	}
	return v.writerOf(ctx, vol, read)
}

// close ends a volume that no pod has. The caller has the handle.
func (v *Volumes) close(ctx context.Context, vol *volume, w *written.Volume) error {
	if err := w.Close(ctx); err != nil {
		return err
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	vol.writer, vol.attachment = nil, nil
	vol.unbring()
	return nil
}

// checkFree refuses a second place for a tree that one pod writes, and another flag at the
// same.
func (v *Volumes) checkFree(w *written.Volume, path string, p Publication) error {
	if err := v.checkUnheld(w.Record(), path); err != nil {
		return err
	}
	if v.isMountedAt(path, w.Dir(), !p.Options.ReadOnly) {
		return fmt.Errorf("%w: at %q", ErrOtherMount, path)
	}
	return nil
}

// isAgain tells whether the same pod has the tree already, from whose target only the mount
// went.
func (v *Volumes) isAgain(vol *volume, path string, p Publication) bool {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	at := vol.at(path)
	return at != nil && at.pod.UID == p.Pod.UID && vol.attachment != nil
}

// stays notes that the volume is staged, or used without that.
func (vol *volume) stays() {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	vol.lingersUntil = time.Time{}
}
