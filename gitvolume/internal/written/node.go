package written

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/nodevolume"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/writeable"
)

// Settings are what the writeable volumes of a node share.
type Settings struct {
	Store *store.Store
	// Connect makes the way to a repository elsewhere, as nobody yet. permit refuses
	// addresses, nil permits all; limits is another text where it refuses others.
	Connect func(r store.Repository, permit remote.Permit, limits string) *access.Access
	Merges  nodevolume.Merges
	Watches *watch.Trees
	Reports *report.Reports
	// ScanEvery is the time between two looks at all of a tree, and StopPush what the push
	// at a stop may take; 0: nothing is pushed then.
	ScanEvery, StopPush time.Duration
	// Volatile is why no new tree is made in the store, as Store.Volatile gave it.
	Volatile string
	// Began is when the process began.
	Began time.Time
	Log   *slog.Logger
}

// Node makes the writeable volumes of a node.
type Node struct{ settings Settings }

// New has no volume yet.
func New(settings Settings) *Node { return &Node{settings: settings} }

// StopPush is what the push at a stop may take.
func (n *Node) StopPush() time.Duration { return n.settings.StopPush }

// Asked is which volume is asked for.
type Asked struct {
	Handle     string
	Attributes attributes.Volume
	// Permit and Limits are those of Settings.Connect.
	Permit remote.Permit
	Limits string
	// Report stays the caller's, to be closed after Close.
	Report *report.Volume
}

// Open finds what the node has of a volume, and changes nothing. The error wraps
// nodevolume.ErrRefused if that is of another repository or branch.
func (n *Node) Open(a Asked) (*Volume, error) {
	s := n.settings
	repository := s.Store.Repository(a.Attributes.URL, 0)
	v := &Volume{
		node: n, handle: a.Handle, attributes: a.Attributes, report: a.Report,
		log: s.Log.With("volume", a.Handle), access: s.Connect(repository, a.Permit, a.Limits),
	}
	var err error
	if v.arming, err = n.recorded(a.Handle); err != nil {
		return nil, err
	}
	v.engine, err = nodevolume.New(nodevolume.Settings{
		Store: s.Store, Merges: s.Merges, Access: v.access, Watches: s.Watches,
		Report: a.Report, Reports: s.Reports, Log: v.log,
		Record: store.Record{Handle: a.Handle, Kind: store.Writeable, URL: a.Attributes.URL, Ref: a.Attributes.Ref.String()},
		Branch: a.Attributes.Ref.Branch(), Arming: v.arming, ScanEvery: s.ScanEvery, Volatile: s.Volatile, Began: s.Began,
	})
	if err != nil {
		return nil, err
	}
	// Whose it was last; who publishes it says it anew.
	r := v.engine.Record()
	return v, v.engine.Belong(OwnerOf(r.Claim, r.Handle), r.Group)
}

// AttributesOf reads back what a record keeps of a volume's attributes. What may be reached
// was decided when the volume was staged.
func AttributesOf(r store.Record) (attributes.Volume, error) {
	read, err := attributes.Rules{Local: true}.Parse(attributes.KindWriteable, map[string]string{"url": r.URL.String(), "ref": r.Ref}, r.Handle)
	if err != nil {
		return attributes.Volume{}, fmt.Errorf("read the record of volume %q: %w", r.Handle, err)
	}
	return read, nil
}

// OwnerOf is who is named in the trailer of a volume's commits: its claim, and without one
// the volume.
func OwnerOf(claim store.Object, handle string) string {
	if claim.Name == "" {
		claim.Name = handle
	}
	if claim.Namespace == "" {
		return claim.Name
	}
	return claim.Namespace + "/" + claim.Name
}

// errNoClass is why a volume is not committed of which nobody said how.
var errNoClass = errors.New("the claim has no class of this driver: set its volumeAttributesClassName")

// Unarmed is what counts for a volume without a class.
func Unarmed() writeable.Arming {
	return writeable.Arming{Policy: policy.Default(), Unarmed: errNoClass}
}

// recorded is the arming that a volume's record names: until the cluster says otherwise,
// what was in force is.
func (n *Node) recorded(handle string) (writeable.Arming, error) {
	kept, err := n.settings.Store.Load(handle)
	switch {
	case errors.Is(err, store.ErrNoRecord), errors.Is(err, store.ErrDamagedRecord):
		return Unarmed(), nil
	case err != nil:
		return writeable.Arming{}, err
	case kept.Class.Policy == nil || !kept.Class.Policy.Armed:
		return Unarmed(), nil
	}
	return writeable.Arming{Policy: *kept.Class.Policy, Class: kept.Class.Name}, nil
}
