package published

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/target"
	"liken.sh/gitvolume/internal/report"
)

// Nothing keeps two PersistentVolumes from having one volumeHandle. Here they are one
// volume, with one credential: their pods are shown the same files, so each must be let in by
// the Secret that counts. Where they bring Secrets that differ, that of one of them counts
// as long as its pods have the volume, whatever the others bring: taken in turns, each
// republish would have the remote asked anew, and who has lost access would be shown what
// another one fetches.

// pvOf is the name of the PersistentVolume that a target is of. By custom that of the
// handle, where the target is not the kubelet's.
func pvOf(at, handle string) string { return cmp.Or(target.VolumeName(at), handle) }

// names tells whether a place is a PersistentVolume's. The caller holds mu.
func (vol *volume) names(pv string) bool {
	for _, p := range vol.places {
		if p.pv == pv {
			return true
		}
	}
	return false
}

// isOthers tells whether the Secret of another PersistentVolume counts than this one, whose
// is not the same. The caller holds mu.
func (vol *volume) isOthers(pv string, secret map[string]string) bool {
	return vol.bringer != nil && *vol.bringer != pv && !maps.Equal(secret, vol.secret) && vol.names(*vol.bringer)
}

// bring has a Secret count, that a publish brought. The caller holds mu.
func (vol *volume) bring(pv string, secret map[string]string) {
	if vol.bringer == nil || !vol.names(*vol.bringer) || !maps.Equal(secret, vol.secret) {
		vol.bringer = &pv
	}
	vol.secret = maps.Clone(secret)
}

// unbring has no Secret count any more. The caller holds mu.
func (vol *volume) unbring() { vol.secret, vol.bringer, vol.isBare = nil, nil, false }

// differs notes whether the Secret that a place brought is none that counts. The caller holds
// mu.
func (vol *volume) differs(p *place, is bool) {
	if p.isOdd != is {
		p.isOdd = is
		vol.judgeSecrets()
	}
}

// judgeSecrets tells of places whose Secret does not count. The caller holds mu.
func (vol *volume) judgeSecrets() {
	odd := map[string]bool{}
	for _, p := range vol.places {
		if p.isOdd {
			odd[p.pv] = true
		}
	}
	if len(odd) == 0 || vol.bringer == nil {
		vol.report.Clear(report.SecretsDiffer)
		return
	}
	vol.report.Raise(report.SecretsDiffer, differing(slices.Sorted(maps.Keys(odd)), *vol.bringer))
}

// differing says what is wrong with PersistentVolumes of one handle, of which the Secret of
// one counts.
func differing(others []string, counts string) string {
	for i, name := range others {
		others[i] = fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("PersistentVolume %s has the volumeHandle of %q and another Secret, and pods of this node have that one: "+
		"give each a volumeHandle of its own, or name one Secret in both", strings.Join(others, ", "), counts)
}

// checkBringer refuses a publish with another Secret than that of the PersistentVolume that
// counts.
func (v *Volumes) checkBringer(vol *volume, p Publication) error {
	pv := pvOf(p.Target, p.Handle)
	vol.mu.Lock()
	isOthers, counts := vol.isOthers(pv, p.Secret), vol.bringer
	vol.mu.Unlock()
	switch {
	case !isOthers, v.nameOneSecret(pv, *counts):
		return nil
	case v.mayTell(pv) || v.mayTell(*counts):
		return fmt.Errorf("%w: whether PersistentVolumes %q and %q name one Secret is not known yet", ErrTooEarly, pv, *counts)
	}
	return fmt.Errorf("%w: %s", ErrSecrets, differing([]string{pv}, *counts))
}

// nameOneSecret tells whether two PersistentVolumes are known to name one Secret for their
// publishes: what they bring differs only while it is rotated, and the newer content counts.
func (v *Volumes) nameOneSecret(pv, other string) bool {
	a, _ := v.settings.Cluster.Get(pv)
	b, _ := v.settings.Cluster.Get(other)
	return a.PublishSecret != "" && a.PublishSecret == b.PublishSecret
}

// mayTell tells whether the cluster has not answered yet about a PersistentVolume.
func (v *Volumes) mayTell(pv string) bool {
	if !v.hasCluster() {
		return false
	}
	_, state := v.settings.Cluster.Get(pv)
	return state == persistentvolume.Unknown
}
