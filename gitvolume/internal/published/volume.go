package published

import (
	"maps"
	"sync"

	"liken.sh/csicommon/podinfo"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/report"
)

// volume is a volume that is shown, or on its way to be.
type volume struct {
	handle string
	kind   attributes.Kind
	report *report.Volume

	// calls is how many Publishes are under way. It is Volumes.mu's.
	calls int

	mu sync.Mutex
	// attachment is nil until the first Publish got so far, and of a volume that could
	// not be resumed.
	attachment *readonly.Attachment
	places     map[string]*place // By target, in every spelling that was used.
	waiting    map[string]waiter // By target, as it is spelled.
	secret     map[string]string // The publish's, as it came last.
	subject    report.Subject
	followed   map[string]bool // PersistentVolumes.
	cluster    facts
}

// place is a target of a volume. It is volume.mu's.
type place struct {
	path    string // canonical
	pod     podinfo.Pod
	mounted bool
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
func (v *Volumes) Republish(handle, at string, secret map[string]string) (isRepeated bool) {
	v.mu.RLock()
	vol := v.volumes[handle]
	v.mu.RUnlock()
	if vol == nil {
		return false
	}
	vol.mu.Lock()
	defer vol.mu.Unlock()
	p := vol.places[at]
	if p == nil || !p.mounted || vol.attachment == nil {
		return false
	}
	v.take(vol, secret)
	return true
}
