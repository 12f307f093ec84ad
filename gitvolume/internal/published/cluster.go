package published

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// facts are what the cluster says of a volume. They are volume.mu's.
type facts struct {
	isKnown                    bool
	stageSecret, publishSecret string // namespace/name
	demand                     string // The annotation's value.
	reclaim                    string // The PersistentVolume's policy.
	class                      string // Of the PersistentVolume; empty: it names none.
	toldNoPublishSecret        bool
}

// subjectOf is whose state is reported, as far as a publish tells.
func subjectOf(kind attributes.Kind, handle, name string, pod podinfo.Pod) report.Subject {
	return report.Subject{Kind: kind, Handle: handle, Volume: name, Namespace: pod.Namespace}
}

// name notes what a publish tells of a volume of which the cluster has told nothing. The
// names are empty where they are not known.
func (vol *volume) name(volume, namespace string) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	told := vol.subject
	told.Volume, told.Namespace = cmp.Or(volume, told.Volume), cmp.Or(told.Namespace, namespace)
	if vol.cluster.isKnown || told == vol.subject {
		return
	}
	vol.subject = told
	vol.report.SetSubject(told)
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
		v.follows.add(pv, vol.handle)
	}
}

// checkForeign returns ErrNoVolume when the cluster has answered about each PersistentVolume
// that the volume may be of, and it is of none: nothing more is going to be told.
func (v *Volumes) checkForeign(vol *volume) error {
	vol.mu.Lock()
	asked := slices.Sorted(maps.Keys(vol.followed))
	vol.mu.Unlock()
	for i, pv := range asked {
		info, state := v.settings.Cluster.Get(pv)
		if state == persistentvolume.Unknown || state == persistentvolume.Present && v.isNamedBy(vol.handle, info) {
			return nil
		}
		asked[i] = strconv.Quote(pv)
	}
	return fmt.Errorf("%w: there is no PersistentVolume %s with the driver %s and the volumeHandle %q",
		ErrNoVolume, strings.Join(asked, " or "), v.settings.Driver, vol.handle)
}

// Changed takes what the cluster says of a PersistentVolume by now. It is the callback of
// the View.
func (v *Volumes) Changed(pv string) {
	info, state := v.settings.Cluster.Get(pv)
	v.pokeReclaim()
	v.nameStage(pv, info)
	if state == persistentvolume.Absent {
		v.gone(pv)
	}
	if state != persistentvolume.Present || info.Driver != v.settings.Driver {
		return // What is shown is shown on; the kubelet takes it away.
	}
	vol := v.known(info.Handle)
	if vol == nil {
		v.keepPolicyOf(info)
		return
	}
	kept, known := v.learn(vol, info)
	if kept == nil {
		return
	}
	err := known.keepIn(kept)
	if err != nil && !errors.Is(err, store.ErrNoRecord) && !errors.Is(err, fs.ErrNotExist) { // It may just have gone.
		v.settings.Log.Warn("what the cluster tells of a volume is not kept", "volume", info.Handle, "error", err)
	}
}

// policyPatience is for how long a record may be in somebody's hands.
const policyPatience = time.Second

// keepPolicyOf keeps the reclaim policy of a tree that nobody has, at once: the look that
// was poked may find the PersistentVolume gone.
func (v *Volumes) keepPolicyOf(info persistentvolume.Volume) {
	ctx, cancel := context.WithTimeout(context.Background(), policyPatience)
	defer cancel()
	if r, err := v.recorded(info.Handle); err != nil {
		v.policyNotKept(info.Handle, err)
	} else if r.Kind == store.Writeable && nameOf(r) == info.Name {
		v.keepPolicy(ctx, info)
	}
}

// known is what a record has of what the cluster told: for the Events of a driver that
// starts while the API server is away, and for the end of a tree.
type known struct {
	pv, reclaim string
	claim       store.Object
}

// keepIn has it be in a record, unless it is.
func (k known) keepIn(a attachment) error {
	if r := a.Record(); r.PV == k.pv && r.Claim == k.claim && r.Reclaim == k.reclaim {
		return nil
	}
	return a.Save(func(r *store.Record) { r.PV, r.Claim, r.Reclaim = k.pv, k.claim, k.reclaim })
}

// told is what the cluster has told of the volume, if it has. The caller holds vol.mu.
func (vol *volume) told() known {
	return known{pv: vol.subject.Volume, claim: vol.claim(), reclaim: vol.cluster.reclaim}
}

// isGone tells whether the cluster is known to have no such PersistentVolume.
func (v *Volumes) isGone(pv string) bool {
	if !v.hasCluster() {
		return false
	}
	_, state := v.settings.Cluster.Get(pv)
	return state == persistentvolume.Absent
}

// gone forgets the credentials of volumes that nobody has and whose PersistentVolume is no
// more.
func (v *Volumes) gone(pv string) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, vol := range v.volumes {
		vol.mu.Lock()
		if vol.writer != nil && !vol.lingersUntil.IsZero() && vol.subject.Volume == pv {
			vol.writer.DropCredential()
		}
		vol.mu.Unlock()
	}
}

// learn gives what keeps the volume's record, nil if nothing does yet, and what it is to
// keep.
func (v *Volumes) learn(vol *volume, info persistentvolume.Volume) (attachment, known) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if !vol.followed[info.Name] {
		return nil, known{}
	}
	vol.subject.Volume = info.Name
	if info.ClaimName != "" {
		vol.subject.Namespace, vol.subject.Claim, vol.subject.ClaimUID = info.ClaimNamespace, info.ClaimName, info.ClaimUID
	}
	vol.report.SetSubject(vol.subject)
	if !vol.cluster.isKnown {
		vol.cluster.isKnown = true
		close(vol.learned)
	}
	if info.AttributesClass != vol.cluster.class {
		vol.cluster.class, vol.classIsDone = info.AttributesClass, false
	}
	v.pokeClasses()
	vol.cluster.reclaim = info.ReclaimPolicy
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
	v.takeNone(vol)
	if vol.writer != nil {
		return vol.writer, vol.told()
	}
	return vol.attachment, vol.told()
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
