package webhook

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/attributes"
)

// readOnly is the access mode of the volumes that can be marked.
const readOnly = "ReadOnlyMany"

// secretName is the name of a Secret, and a path.
type secretName struct{ namespace, name string }

func (s secretName) String() string { return s.namespace + "/" + s.name }

// target is a volume that a push can mark.
type target struct {
	volume, uid string
	secret      secretName
	repository  string // As repositoryOf makes it.
	ref         string // As the volume has it, short or full.
}

// targetOf is what of a PersistentVolume of this driver has to be known, false when no push
// marks it: it names no Secret, is none that only reads, or the node refuses what it says.
func targetOf(v persistentvolume.Volume) (target, bool) {
	if len(v.AccessModes) == 0 || v.AccessModes[0] != readOnly || v.ClaimNamespace == "" || v.Deleting {
		return target{}, false
	}
	// Whether a node may reach the URL is the node's business.
	asked, err := attributes.Rules{Local: true}.Parse(attributes.KindReadOnlyClaim, v.Attributes, v.Handle)
	if err != nil || asked.WebhookSecret == "" {
		return target{}, false
	}
	if _, isCommit := asked.Ref.Commit(); isCommit {
		return target{}, false // It never moves.
	}
	return target{
		volume: v.Name, uid: v.UID,
		secret:     secretName{v.ClaimNamespace, asked.WebhookSecret},
		repository: repositoryOf(asked.URL), ref: asked.Ref.String(),
	}, true
}

// follows tells whether the target's ref is the one of a full name. A short name can be a
// branch or a tag; only the remote knows which.
func (t target) follows(ref string) bool {
	if strings.HasPrefix(t.ref, "refs/") {
		return t.ref == ref
	}
	return ref == "refs/heads/"+t.ref || ref == "refs/tags/"+t.ref
}

// targets are those of the cluster. The zero value has none.
type targets struct {
	mu       sync.RWMutex
	volumes  map[string]target // by the PersistentVolume's name
	bySecret map[secretName]map[string]target
}

// change takes what is known of a volume by now; isKept false: nothing.
func (t *targets) change(volume string, known target, isKept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if had, has := t.volumes[volume]; has {
		delete(t.bySecret[had.secret], volume)
		if len(t.bySecret[had.secret]) == 0 {
			delete(t.bySecret, had.secret)
		}
		delete(t.volumes, volume)
	}
	if !isKept {
		return
	}
	if t.volumes == nil {
		t.volumes, t.bySecret = map[string]target{}, map[secretName]map[string]target{}
	}
	t.volumes[volume] = known
	if t.bySecret[known.secret] == nil {
		t.bySecret[known.secret] = map[string]target{}
	}
	t.bySecret[known.secret][volume] = known
}

// isNamed tells whether a volume of the Secret's namespace names it.
func (t *targets) isNamed(s secretName) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.bySecret[s]) > 0
}

// of are those that a push signed with the Secret is about.
func (t *targets) of(s secretName, p push) []target {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var found []target
	for _, known := range t.bySecret[s] {
		for _, repository := range p.repositories {
			if known.repository == repository && known.follows(p.ref) {
				found = append(found, known)
				break
			}
		}
	}
	return found
}

// ofAll are those that name the Secret.
func (t *targets) ofAll(s secretName) []target {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.bySecret[s]))
}

// all are all of them.
func (t *targets) all() []target {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.volumes))
}
