package published

import (
	"context"
	"maps"
	"sync"
	"time"

	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/written"
)

// attachment is what a volume is shown by: *readonly.Attachment or *written.Volume.
type attachment interface {
	Dir() string
	Attributes() attributes.Volume
	Record() store.Record
	Save(change func(*store.Record)) error
	TakeCredential(c *credential.Credential)
	HasCredential() bool
	Demand()
	Detach(ctx context.Context) error
}

// volume is a volume that is shown, on its way to be, or not yet done with.
type volume struct {
	handle string
	kind   attributes.Kind
	report *report.Volume

	// calls is how many Publishes are under way. It is Volumes.mu's.
	calls int

	// learned is closed when the cluster has told whose the volume is.
	learned chan struct{}
	// rearming is held while the volume's class is read.
	rearming sync.Mutex

	mu sync.Mutex
	// attachment is nil until the first Publish got so far, and of a volume that could
	// not be resumed.
	attachment attachment
	// writer is what a writeable volume is written by, from its stage on until nothing of
	// it waits; nil otherwise.
	writer *written.Volume
	// lingersUntil is how long a volume that is not staged keeps its credential at most;
	// zero while it is staged.
	lingersUntil time.Time
	places       map[string]*place // By target, in every spelling that was used.
	waiting      map[string]waiter // By target, as it is spelled.
	secret       map[string]string // The publish's that counts, as it came.
	bringer      *string           // The PersistentVolume whose publish brought it; nil: none did.
	isBare       bool              // A publish came without one.
	subject      report.Subject
	followed     map[string]bool // PersistentVolumes.
	cluster      facts
	// classIsDone tells that the class that the cluster names counts.
	classIsDone bool
}

// place is a target of a volume. It is volume.mu's.
type place struct {
	path    string // canonical
	pv      string // The name of the PersistentVolume; see pvOf.
	pod     podinfo.Pod
	mounted bool
	// isReadOnly tells that the pod cannot write there.
	isReadOnly bool
	// isOdd tells that the Secret that came for it last does not count.
	isOdd bool
}

// placeOf is a target as a record has it.
func placeOf(handle string, t store.Target) *place {
	return &place{path: t.Path, pv: pvOf(t.Path, handle), pod: podinfo.Pod(t.Pod), isReadOnly: t.ReadOnly}
}

// at is the place at a canonical path. The caller holds mu.
func (vol *volume) at(path string) *place {
	for _, p := range vol.places {
		if p.path == path {
			return p
		}
	}
	return nil
}

// settle notes a place under a spelling of it. The caller holds mu.
func (vol *volume) settle(spelled string, p *place) {
	vol.places[spelled], vol.places[p.path] = p, p
}

// quit forgets the place at a canonical path; the pod is that of the place. The caller
// holds mu.
func (vol *volume) quit(path string) (pod podinfo.Pod, was bool) {
	maps.DeleteFunc(vol.places, func(_ string, p *place) bool {
		if p.path != path {
			return false
		}
		pod, was = p.pod, true
		return true
	})
	return pod, was
}

// each gives a copy of every place once.
func (vol *volume) each() []place {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	var all []place
	for spelled, p := range vol.places {
		if spelled == p.path {
			all = append(all, *p)
		}
	}
	return all
}

// Republish takes the Secret of a publish that is repeated at a target where the volume is
// shown, and tells whether it is one. It cannot fail: with a Secret that is none the last
// good one counts on, and the volume is abnormal.
func (v *Volumes) Republish(handle, at string, isReadOnly bool, secret map[string]string) (isRepeated bool) {
	v.mu.RLock()
	vol := v.volumes[handle]
	v.mu.RUnlock()
	if vol == nil {
		return false
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	p := vol.places[at]
	if p == nil || !p.mounted || p.isReadOnly != isReadOnly || vol.attachment == nil {
		return false
	}
	v.take(vol, p, secret)
	return true
}
