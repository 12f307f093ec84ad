package published

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"

	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/target"
	"liken.sh/csicommon/usage"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/written"
)

// DemandAnnotation is that of a PersistentVolume by which somebody asks for a pull: each
// new value is one demand.
const DemandAnnotation = "git.liken.sh/pull-requested-at"

var (
	// ErrSecrets is wrapped when the Secrets of stage and publish do not fit together.
	ErrSecrets = errors.New("the volume's Secrets do not fit together")
	// ErrTooEarly is wrapped when a call is to be made again in a moment: something that
	// it needs is on its way.
	ErrTooEarly = errors.New("it is too early")
	// ErrNoVolume is wrapped when the cluster has no PersistentVolume of the volume, and
	// something is needed that only it tells.
	ErrNoVolume = errors.New("the cluster does not know the volume")
	// ErrNotPublished is wrapped when a volume is not at the path that is asked about.
	ErrNotPublished = errors.New("not published there")
	// ErrHeld is wrapped when a writeable volume is at another target already.
	ErrHeld = errors.New("the volume is in use on this node")
	// ErrOtherMount is wrapped when a writeable volume is at the target, and can be written
	// there or not, as it is not asked for.
	ErrOtherMount = errors.New("the volume is mounted there otherwise")
	// ErrOtherKind is wrapped when the handle is that of a volume of another kind.
	ErrOtherKind = errors.New("the handle is taken on this node")
)

// Mounts is what is needed of the node's mounts; *mount.System is it.
type Mounts interface {
	target.Mounts
	IsMount(path string) (bool, error)
	Shows(point string, dir *os.File, name string) (mount.Mount, bool)
}

// Cluster tells of PersistentVolumes what is known without waiting for anything;
// *persistentvolume.View is it.
type Cluster interface {
	Follow(pv string)
	Unfollow(pv string)
	// Tell tells Changed once more what is known of a PersistentVolume that is followed.
	Tell(pv string)
	Get(pv string) (persistentvolume.Volume, persistentvolume.State)
	// Read and Confirm ask the API server, and are for removals alone.
	Read(ctx context.Context, pv string) (persistentvolume.Volume, bool, error)
	Confirm(ctx context.Context, cluster, driver string) ([]persistentvolume.Volume, error)
}

// Settings are what Volumes need. Cluster and Classes may be nil, both: there is no
// cluster.
type Settings struct {
	// Driver is the CSI driver's name, by which PersistentVolumes call it.
	Driver    string
	Store     *store.Store
	Followers *readonly.Followers
	Written   *written.Node
	Mounts    Mounts
	// KubeletDir is the kubelet's root directory, canonical.
	KubeletDir string
	Reports    *report.Reports
	// Rules, Allowed and Addresses are what the node's flags let volumes reach.
	Rules     attributes.Rules
	Allowed   credential.Allowed
	Addresses attributes.Addresses
	Cluster   Cluster
	Classes   Classes
	Log       *slog.Logger
}

// Volumes are the volumes of a node. They may be used by many goroutines. Two
// calls that show or take away the same volume wait for each other; nothing else does.
type Volumes struct {
	settings Settings
	targets  *target.Targets
	meter    *usage.Meter
	// questions are those about a tree's disk that a call asks without its volume's lock.
	questions usage.Questions
	handles   keyedmutex.Mutex
	follows   follows
	poked     chan struct{} // A class may be due.
	// reclaimable is told that a tree may be one that nobody needs.
	reclaimable chan struct{}
	leaving     context.Context // It ends with Leave.
	leave       context.CancelFunc

	// mu is taken before volume.mu and never held while anything waits.
	mu      sync.RWMutex
	volumes map[string]*volume // By handle.
	// staged are the credentials that came with the stage of volumes, by handle.
	staged map[string]stagedCredential
}

// New shows nothing yet. The store has to be open as long as the Volumes are used.
func New(settings Settings) *Volumes {
	if settings.Cluster == nil {
		settings.Cluster = noCluster{}
	}
	v := &Volumes{
		settings: settings, volumes: map[string]*volume{}, staged: map[string]stagedCredential{},
		follows: follows{cluster: settings.Cluster, all: map[string]map[string]bool{}},
		poked:   make(chan struct{}, 1), reclaimable: make(chan struct{}, 1),
	}
	v.leaving, v.leave = context.WithCancel(context.Background())
	v.targets = target.New(target.Config{
		KubeletDir: settings.KubeletDir, StoreDir: settings.Store.Dir(), Shown: settings.Store.Root(),
		Mounts: settings.Mounts, Log: settings.Log,
	})
	v.meter = usage.NewMeter(usage.Config{Open: openMeasured, Log: settings.Log})
	return v
}

// noCluster knows nothing of any PersistentVolume.
type noCluster struct{}

func (noCluster) Follow(string)   {}
func (noCluster) Unfollow(string) {}
func (noCluster) Tell(string)     {}
func (noCluster) Get(string) (persistentvolume.Volume, persistentvolume.State) {
	return persistentvolume.Volume{}, persistentvolume.Unknown
}
func (noCluster) Read(context.Context, string) (persistentvolume.Volume, bool, error) {
	return persistentvolume.Volume{}, false, errNoCluster
}
func (noCluster) Confirm(context.Context, string, string) ([]persistentvolume.Volume, error) {
	return nil, errNoCluster
}

var errNoCluster = errors.New("there is no cluster")
