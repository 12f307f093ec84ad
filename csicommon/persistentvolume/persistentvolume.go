// Package persistentvolume tells a node what the cluster knows about its
// volumes: it watches, by name, the PersistentVolumes that the node's own
// records name, and makes the one complete live read that confirms a removal.
// A controller, of which a cluster has a few, has a Catalogue of its driver's.
//
// It must never keep the PersistentVolumes of others, nor watch them for a node
// (memory and traffic follow the volumes on the node, not those in the cluster),
// must never take a failed, partial or foreign answer for an absence, and never
// removes anything itself.
package persistentvolume

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// callTimeout bounds each read of the API server; a watch has its own bound.
const callTimeout = 30 * time.Second

// Volume is what the drivers need to know of one PersistentVolume.
type Volume struct {
	Name string
	UID  string
	// Driver and Handle are those of spec.csi, empty for another kind of volume.
	Driver string
	Handle string
	// Attributes is spec.csi.volumeAttributes, nil when there is none.
	Attributes map[string]string
	// AccessModes are as in the object, such as ReadOnlyMany.
	AccessModes []string
	// ReclaimPolicy is Retain, Delete or Recycle.
	ReclaimPolicy  string
	ClaimNamespace string
	ClaimName      string
	// ClaimUID is spec.claimRef.uid, empty until the volume is bound: a claim that is made
	// again has another one.
	ClaimUID string
	// StageSecret and PublishSecret are the Secrets, as namespace/name, that
	// spec.csi.nodeStageSecretRef and nodePublishSecretRef name; empty when unset.
	StageSecret   string
	PublishSecret string
	// AttributesClass is spec.volumeAttributesClassName, empty when unset.
	AttributesClass string
	// Annotations holds those that Config.Annotations names; nil when there is none.
	Annotations map[string]string
	// Deleting means that a finalizer still keeps it: it exists.
	Deleting bool
}

func (a Volume) equal(b Volume) bool {
	if !maps.Equal(a.Annotations, b.Annotations) || !maps.Equal(a.Attributes, b.Attributes) || !slices.Equal(a.AccessModes, b.AccessModes) {
		return false
	}
	return a.Name == b.Name && a.UID == b.UID && a.Driver == b.Driver && a.Handle == b.Handle &&
		a.ReclaimPolicy == b.ReclaimPolicy && a.ClaimNamespace == b.ClaimNamespace && a.ClaimName == b.ClaimName &&
		a.ClaimUID == b.ClaimUID && a.StageSecret == b.StageSecret && a.PublishSecret == b.PublishSecret &&
		a.AttributesClass == b.AttributesClass && a.Deleting == b.Deleting
}

// State is what the API server last said about a followed name.
type State int

// Unknown is the state until the first successful answer, and that of a name
// nobody follows. No error leads from Present to Absent, or back to Unknown.
// Absent is a reason to look, not yet one to remove: see Confirm.
const (
	Unknown State = iota
	Present
	Absent
)

func (s State) String() string {
	switch s {
	case Present:
		return "present"
	case Absent:
		return "absent"
	default:
		return "unknown"
	}
}

// Config is what a View needs. Client and Log must be set.
type Config struct {
	Client rest.Interface
	Log    *slog.Logger
	// Changed, when set, is called with a followed name after its first answer,
	// after each change of what Get returns and after Tell. Calls for one name never
	// overlap, those for different names may; it may call any method of the View.
	Changed func(name string)
	// Annotations are the keys that Volume.Annotations keeps.
	Annotations []string
}

// View follows PersistentVolumes by name. Its methods are safe for concurrent use.
type View struct {
	config Config

	mu      sync.Mutex
	follows map[string]*follow
	// running is the context of Run while it runs, nil before and after.
	running context.Context
	loops   sync.WaitGroup
	// failing counts the follows whose last attempt failed: an API server that
	// is away costs one line in the log, not one for each volume.
	failing int
}

// New makes a View that follows nothing.
func New(config Config) *View {
	return &View{config: config, follows: map[string]*follow{}}
}

// Run watches the followed names until ctx ends, and returns when no watch is
// left. It is called once; names may be followed before and while it runs.
func (v *View) Run(ctx context.Context) {
	v.mu.Lock()
	v.running = ctx
	for _, f := range v.follows {
		v.start(f)
	}
	v.mu.Unlock()

	<-ctx.Done()
	v.mu.Lock()
	v.running = nil
	v.mu.Unlock()
	v.loops.Wait()
}

// Follow starts to watch name; following it again changes nothing. The empty
// name is nobody's and is not followed, lest it be reported absent.
func (v *View) Follow(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if name == "" || v.follows[name] != nil {
		return
	}
	f := &follow{name: name}
	v.follows[name] = f
	if v.running != nil {
		v.start(f)
	}
}

// Tell has Changed be called once more for a followed name of which there was an
// answer: for who begins to want to know of one that is followed already. Until
// the first answer there is nothing to tell. It does not wait for the call.
func (v *View) Tell(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.follows[name]
	if f == nil || f.state == Unknown || v.running == nil {
		return
	}
	v.loops.Go(func() { v.tell(f) })
}

// Unfollow stops watching name and forgets its state. It does not wait: a call
// of Changed that has begun may still run.
func (v *View) Unfollow(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.follows[name]
	if f == nil {
		return
	}
	delete(v.follows, name)
	v.succeeded(f)
	if f.stop != nil {
		f.stop()
	}
}

// Get returns what is known of name without asking the API server. The Volume
// is set when the State is Present; its maps and slices must not be changed.
func (v *View) Get(name string) (Volume, State) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.follows[name]
	if f == nil {
		return Volume{}, Unknown
	}
	return f.volume, f.state
}

// start begins the watch of f; the caller holds v.mu and v.running is set.
func (v *View) start(f *follow) {
	ctx, stop := context.WithCancel(v.running)
	f.stop = stop
	v.loops.Go(func() {
		defer stop()
		v.keepFollowing(ctx, f)
	})
}
