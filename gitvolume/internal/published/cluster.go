package published

import (
	"errors"
	"fmt"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// facts are what the cluster says of a volume. They are volume.mu's.
type facts struct {
	isKnown                    bool
	stageSecret, publishSecret string // namespace/name
	demand                     string // The annotation's value.
	toldNoPublishSecret        bool
}

// subjectOf is whose state is reported, as far as a publish tells.
func subjectOf(kind attributes.Kind, handle, name string, pod podinfo.Pod) report.Subject {
	return report.Subject{Kind: kind, Handle: handle, Volume: name, Namespace: pod.Namespace}
}

// claim is the volume's claim as far as it is known. The caller holds mu.
func (vol *volume) claim() store.Object {
	return store.Object{Namespace: vol.subject.Namespace, Name: vol.subject.Claim, UID: vol.subject.ClaimUID}
}

// follow has the PersistentVolume of a claim watched. The caller holds mu.
func (v *Volumes) follow(vol *volume, pv string) {
	if vol.kind == attributes.KindInline || pv == "" {
		return
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if !vol.followed[pv] {
		vol.followed[pv] = true
		v.settings.Cluster.Follow(pv)
	}
}

// Changed takes what the cluster says of a PersistentVolume by now. It is the callback of
// the View.
func (v *Volumes) Changed(pv string) {
	info, state := v.settings.Cluster.Get(pv)
	if state != persistentvolume.Present || info.Driver != v.settings.Driver {
		return // What is shown is shown on; the kubelet takes it away.
	}
	vol := v.known(info.Handle)
	if vol == nil {
		return
	}
	attachment, claim := v.learn(vol, info)
	if attachment == nil || attachment.Record().Claim == claim {
		return
	}
	// For the Events of a driver that starts while the API server is away.
	err := attachment.Save(func(r *store.Record) { r.PV, r.Claim = info.Name, claim })
	if err != nil && !errors.Is(err, store.ErrNoRecord) {
		v.settings.Log.Warn("the claim's name is not kept", "volume", info.Handle, "error", err)
	}
}

func (v *Volumes) learn(vol *volume, info persistentvolume.Volume) (*readonly.Attachment, store.Object) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if !vol.followed[info.Name] {
		return nil, store.Object{}
	}
	vol.subject.Volume = info.Name
	if info.ClaimName != "" {
		vol.subject.Namespace, vol.subject.Claim, vol.subject.ClaimUID = info.ClaimNamespace, info.ClaimName, info.ClaimUID
	}
	vol.report.SetSubject(vol.subject)
	vol.cluster.isKnown = true
	vol.cluster.stageSecret, vol.cluster.publishSecret = info.StageSecret, info.PublishSecret
	if demand := info.Annotations[DemandAnnotation]; demand != vol.cluster.demand {
		vol.cluster.demand = demand
		// One that was there before the volume was is a demand too: it may have come
		// just after the volume was fetched.
		if demand != "" && vol.attachment != nil {
			vol.attachment.Demand()
		}
	}
	v.consider(vol)
	return vol.attachment, vol.claim()
}

// consider tells, once, of a volume whose credential a restarted driver would not get. The
// caller holds vol.mu.
func (v *Volumes) consider(vol *volume) {
	info := &vol.cluster
	if vol.attachment == nil || info.toldNoPublishSecret || info.stageSecret == "" || info.publishSecret != "" {
		return
	}
	info.toldNoPublishSecret = true
	vol.report.Happened(report.NoPublishSecret, fmt.Sprintf(
		"PersistentVolume %q names a Secret in nodeStageSecretRef and none in nodePublishSecretRef: "+
			"after a restart the driver has no credential for the volume; name the Secret in both", vol.subject.Volume))
}
