package published

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// Staging is what a stage says of a volume.
type Staging struct {
	Handle             string
	Kind               attributes.Kind
	Attributes, Secret map[string]string
}

// Stage checks what the volume says, and keeps the Secret for its first publish. What a
// writeable volume starts from is fetched, and remote.ErrInProgress says that this goes on,
// ErrTooEarly that Leave ended it; of others nothing is: that is the publish's, which knows
// the pod. Of a volume that is shown it fails for nothing, or a restarted kubelet would never
// come to the publish again.
func (v *Volumes) Stage(ctx context.Context, s Staging) error {
	read, err := v.settings.Rules.Parse(s.Kind, s.Attributes, s.Handle)
	if vol := v.known(s.Handle); vol != nil && vol.isShown() {
		v.restage(vol, s.Secret, read.URL)
		return nil
	}
	if err != nil {
		return err
	}
	var given *credential.Credential // None: the publish may have one.
	if len(s.Secret) > 0 {
		if given, err = v.credentialOf(s.Secret, read.URL); err != nil {
			return fmt.Errorf("the Secret of nodeStageSecretRef: %w", err)
		}
		v.keepStaged(s.Handle, stagedCredential{given: given, url: read.URL})
	} else {
		v.dropStaged(s.Handle) // An earlier stage's was another PersistentVolume's.
	}
	if s.Kind != attributes.KindWriteable {
		return nil
	}
	ctx, done := v.untilLeave(ctx)
	defer done()
	return v.orLeaving(v.stageWritten(ctx, s, read, given))
}

func (v *Volumes) stageWritten(ctx context.Context, s Staging, read attributes.Volume, given *credential.Credential) error {
	vol := v.enterStaged(s)
	defer v.exit(vol)
	unlock, err := v.handles.Lock(ctx, s.Handle)
	if err != nil {
		return err
	}
	defer unlock()
	err = v.checkKind(vol, s.Kind)
	w, openErr := v.writerOf(ctx, vol, read)
	if err == nil {
		err = openErr
	}
	if errors.Is(err, ErrOtherKind) || errors.Is(err, nodevolume.ErrRefused) {
		// The publish says it, on the pod.
		v.settings.Log.Warn("a volume is staged that is going to be refused", "volume", s.Handle, "error", err)
		return nil
	}
	if err != nil {
		return err
	}
	vol.stays()
	if given != nil {
		w.TakeCredential(given)
	}
	if err := vol.keepTold(w); err != nil {
		return err
	}
	return w.Stage(ctx)
}

// enterStaged is the volume of a stage, until exit.
func (v *Volumes) enterStaged(s Staging) *volume {
	if r, err := v.settings.Store.Load(s.Handle); err == nil && r.Kind == store.Writeable && r.PV != "" {
		return v.enterRecord(r)
	}
	// A publish tells better.
	return v.enterAs(s.Handle, s.Kind, pvOf("", s.Handle), podinfo.Pod{})
}

func (vol *volume) isShown() bool {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	for _, p := range vol.places {
		if p.mounted {
			return vol.attachment != nil
		}
	}
	return false
}

// restage takes the credential of a stage of a volume that is shown, where no publish brings
// one. Nothing else of it changes. The URL is the stage's, zero where it is not known; a
// credential for another than the volume's is not its own.
func (v *Volumes) restage(vol *volume, secret map[string]string, url attributes.URL) {
	if len(secret) == 0 {
		return
	}
	given, shown, pv := vol.takeStaged(v, secret, url)
	if given == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	// The kubelet that was restarted stages what was staged.
	staged := v.staged[vol.handle]
	staged.given, staged.url, staged.pv = given, shown, cmp.Or(staged.pv, pv)
	v.staged[vol.handle] = staged
}

// takeStaged gives what was read of a Secret, nil where nothing was, the volume's URL, and a
// PersistentVolume that shows it.
func (vol *volume) takeStaged(v *Volumes, secret map[string]string, url attributes.URL) (given *credential.Credential, shown attributes.URL, pv string) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if vol.attachment == nil {
		return nil, url, ""
	}
	shown = vol.attachment.Attributes().URL
	if !url.IsZero() && url != shown {
		v.settings.Log.Warn("a volume is staged for another repository than its pods have", "volume", vol.handle, "repo", url.Repo())
		return nil, url, ""
	}
	for _, p := range vol.places {
		pv = p.pv
	}
	given, err := v.credentialOf(secret, shown)
	switch {
	case len(vol.secret) > 0:
	case err != nil:
		vol.report.Raise(report.CredentialMalformed, "the Secret of nodeStageSecretRef: "+err.Error())
	default:
		vol.report.Clear(report.CredentialMalformed)
		vol.attachment.TakeCredential(given)
	}
	if err != nil {
		return nil, shown, pv
	}
	return given, shown, pv
}

// Unstage forgets what a stage brought. Of a writeable volume it tries once more to push
// what the remote lacks, and keeps the tree.
func (v *Volumes) Unstage(ctx context.Context, handle string) error {
	v.dropStaged(handle)
	return v.unstageWritten(ctx, handle)
}
