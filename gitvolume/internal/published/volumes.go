package published

import (
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
	// ErrNotPublished is wrapped when a volume is not at the path that is asked about.
	ErrNotPublished = errors.New("not published there")
)

// Mounts is what is needed of the node's mounts; *mount.System is it.
type Mounts interface {
	target.Mounts
	IsMount(path string) (bool, error)
	Shows(point string, dir *os.File, name string) (mount.Mount, bool)
}

// Cluster tells what is known of PersistentVolumes, without waiting for anything;
// *persistentvolume.View is it.
type Cluster interface {
	Follow(pv string)
	Unfollow(pv string)
	Get(pv string) (persistentvolume.Volume, persistentvolume.State)
}

// Settings are what Volumes need. Cluster alone may be nil: there is none.
type Settings struct {
	// Driver is the CSI driver's name, by which PersistentVolumes call it.
	Driver    string
	Store     *store.Store
	Followers *readonly.Followers
	Mounts    Mounts
	// KubeletDir is the kubelet's root directory, canonical.
	KubeletDir string
	Reports    *report.Reports
	// Rules, Allowed and Addresses are what the node's flags let volumes reach.
	Rules     attributes.Rules
	Allowed   credential.Allowed
	Addresses attributes.Addresses
	Cluster   Cluster
	Log       *slog.Logger
}

// Volumes are the read-only volumes of a node. They may be used by many goroutines. Two
// calls that show or take away the same volume wait for each other; nothing else does.
type Volumes struct {
	settings Settings
	targets  *target.Targets
	meter    *usage.Meter
	handles  keyedmutex.Mutex

	// mu is taken before volume.mu and never held while anything waits.
	mu      sync.RWMutex
	volumes map[string]*volume // By handle.
	// staged are the credentials that came with the stage of volumes, by handle.
	staged map[string]*credential.Credential
}

// New shows nothing yet. The store has to be open as long as the Volumes are used.
func New(settings Settings) *Volumes {
	if settings.Cluster == nil {
		settings.Cluster = noCluster{}
	}
	v := &Volumes{settings: settings, volumes: map[string]*volume{}, staged: map[string]*credential.Credential{}}
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
func (noCluster) Get(string) (persistentvolume.Volume, persistentvolume.State) {
	return persistentvolume.Volume{}, persistentvolume.Unknown
}
