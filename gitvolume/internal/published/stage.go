package published

import (
	"fmt"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/report"
)

// Staging is what a stage says of a volume.
type Staging struct {
	Handle             string
	Kind               attributes.Kind
	Attributes, Secret map[string]string
}

// Stage checks what the volume says, and keeps the Secret for its first publish. Nothing
// is fetched: that is the publish's, which knows the pod. Of a volume that is shown it
// fails for nothing, or a restarted kubelet would never come to the publish again.
func (v *Volumes) Stage(s Staging) error {
	read, err := v.settings.Rules.Parse(s.Kind, s.Attributes, s.Handle)
	if err != nil {
		return err
	}
	given, err := v.credentialOf(s.Secret, read.URL)
	if len(s.Secret) == 0 {
		given = nil // The publish may have one.
		err = nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	vol := v.volumes[s.Handle]
	isShown := vol != nil && vol.isShown()
	if isShown {
		vol.restaged(given, err)
	}
	switch {
	case err != nil && isShown: // The last good one counts on.
	case err != nil:
		return fmt.Errorf("the Secret of nodeStageSecretRef: %w", err)
	case given == nil:
		delete(v.staged, s.Handle) // An earlier stage's was another PersistentVolume's.
	default:
		v.staged[s.Handle] = given
	}
	return nil
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

// restaged takes the credential of a stage where no publish brings one.
func (vol *volume) restaged(given *credential.Credential, err error) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	switch {
	case len(vol.secret) > 0 || vol.attachment == nil:
	case err != nil:
		vol.report.Raise(report.CredentialMalformed, "the Secret of nodeStageSecretRef: "+err.Error())
	case given != nil:
		vol.report.Clear(report.CredentialMalformed)
		vol.attachment.TakeCredential(given)
	}
}

// Unstage forgets what a stage brought.
func (v *Volumes) Unstage(handle string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.staged, handle)
}
