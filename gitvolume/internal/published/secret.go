package published

import (
	"fmt"
	"maps"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/report"
)

// credentialFor is the credential that the volume is to be fetched with: the publish's,
// else the stage's. It is nil for a writeable volume whose credential did not come: what the
// node keeps of it can be shown all the same.
func (v *Volumes) credentialFor(vol *volume, p Publication, url attributes.URL) (*credential.Credential, error) {
	given, err := v.credentialOf(p.Secret, url)
	if err != nil && len(p.Secret) > 0 {
		return nil, err
	}
	if err := v.checkBringer(vol, p); err != nil {
		return nil, err
	}
	stage := v.stageFor(p.Handle, pvOf(p.Target, p.Handle))
	staged := stage.given
	vol.mu.Lock()
	isFirst, info := vol.attachment == nil, vol.cluster
	vol.mu.Unlock()
	switch {
	case len(p.Secret) == 0 && staged != nil:
		if err := staged.Fits(url, v.settings.Allowed); err != nil {
			return nil, err
		}
		return staged, v.checkStage(stage, pvOf(p.Target, p.Handle), url)
	case len(p.Secret) == 0 && info.stageSecret != "" && p.Kind == attributes.KindWriteable:
		return nil, nil
	case len(p.Secret) == 0 && info.stageSecret != "" && info.publishSecret == "":
		return nil, fmt.Errorf("%w: the credential came with the volume's stage, and the driver was restarted since; "+
			"name the Secret in the PersistentVolume's nodePublishSecretRef too", ErrSecrets)
	case err != nil, staged == nil, !isFirst, given.Equal(staged):
		return given, err
	case info.stageSecret != "" && info.stageSecret == info.publishSecret:
		return given, nil // It was rotated in between.
	case p.Kind != attributes.KindInline && !info.isKnown && v.hasCluster():
		if err := v.checkForeign(vol); err != nil {
			return nil, fmt.Errorf("%w: those of stage and publish differ, and no PersistentVolume says that they are one that was rotated: %w", ErrSecrets, err)
		}
		return nil, fmt.Errorf("%w: whether the Secrets of stage and publish are one is not known yet", ErrTooEarly)
	}
	return nil, fmt.Errorf("%w: the PersistentVolume's nodeStageSecretRef and nodePublishSecretRef name Secrets that differ; name one Secret in both", ErrSecrets)
}

func (v *Volumes) hasCluster() bool {
	_, none := v.settings.Cluster.(noCluster)
	return !none
}

// take has a Secret count that came with a publish at the place. None changes nothing: what
// came with the stage, or nobody's, still counts. The caller holds vol.mu.
func (v *Volumes) take(vol *volume, p *place, secret map[string]string) {
	if len(secret) == 0 {
		vol.isBare = true
		v.takeNone(vol)
		return
	}
	isNew := !maps.Equal(secret, vol.secret)
	isOdd := isNew && vol.isOthers(p.pv, secret) && !v.nameOneSecret(p.pv, *vol.bringer)
	vol.differs(p, isOdd)
	if !isNew || isOdd {
		return
	}
	vol.bring(p.pv, secret)
	taken, err := v.credentialOf(secret, vol.attachment.Attributes().URL)
	if err != nil {
		vol.report.Raise(report.CredentialMalformed, err.Error())
		return
	}
	vol.report.Clear(report.CredentialMalformed)
	vol.attachment.TakeCredential(taken)
}

// takeNone has a volume's remote be asked as nobody that has no Secret at all, neither of
// its publish nor of its stage: of a writeable volume nothing else tells that after a
// restart, and a read-only one would wait for a credential that never comes where the flags
// changed what may be reached. The caller holds vol.mu.
func (v *Volumes) takeNone(vol *volume) {
	info := &vol.cluster
	switch {
	case !vol.isBare || vol.attachment == nil || vol.attachment.HasCredential():
	case vol.kind != attributes.KindInline && v.hasCluster() && (!info.isKnown || info.stageSecret != "" || info.publishSecret != ""):
	default:
		vol.attachment.TakeCredential(credential.Anonymous())
	}
}

// credentialOf reads a Secret that a repository of the URL is to be shown.
func (v *Volumes) credentialOf(secret map[string]string, url attributes.URL) (*credential.Credential, error) {
	read := credential.Anonymous()
	if len(secret) > 0 {
		var err error
		if read, err = credential.Parse(secret); err != nil {
			return nil, err
		}
	}
	return read, read.Fits(url, v.settings.Allowed)
}
