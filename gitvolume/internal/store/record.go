package store

import (
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/policy"
)

// Kind is which of the three volumes a record is of.
type Kind string

// The kinds of volume.
const (
	Inline    Kind = "inline"
	ReadOnly  Kind = "readonly"
	Writeable Kind = "writeable"
)

// Record is what the driver has to know of a volume after a restart. It is written as
// JSON that a person can read.
type Record struct {
	Handle string         `json:"handle"`
	Kind   Kind           `json:"kind"`
	URL    attributes.URL `json:"url"`
	Ref    string         `json:"ref"`             // As it was written.
	Depth  int            `json:"depth,omitempty"` // Commits that are fetched; 0: all.

	PV    string `json:"pv,omitempty"` // The PersistentVolume's name; none of an inline volume.
	Claim Object `json:"claim,omitzero"`
	// Reclaim is the PersistentVolume's reclaim policy when it was last seen.
	Reclaim string `json:"reclaimPolicy,omitempty"`
	// Staged tells that the volume was staged and not unstaged.
	Staged  bool     `json:"staged,omitempty"`
	Targets []Target `json:"targets,omitempty"`

	// Class is the class that was in force last.
	Class Class `json:"class,omitzero"`

	// Group is the volume mount group; nil: none was asked for.
	Group *uint32 `json:"group,omitempty"`
	// GroupGiven tells that the whole tree was given to the group.
	GroupGiven bool `json:"groupGiven,omitempty"`

	Position Position `json:"position,omitzero"`
	// Repository is the one that has the position's commits; zero: not known. It tells a
	// volume whose repository broke from one for which another volume made a new one.
	Repository Identity `json:"repository,omitzero"`

	// Reading is what a read-only volume shows; nil until it shows something.
	Reading *Reading `json:"reading,omitempty"`
}

// Reading is what a read-only volume follows, and as whom.
type Reading struct {
	Pull    string `json:"pull"`    // As its attribute is written.
	Offline string `json:"offline"` // As its attribute is written.
	// Checkout is the key of the tree that the volume shows.
	Checkout string `json:"checkout"`
	// Scope is a keyed digest of the credential that brought what the volume shows.
	Scope string `json:"scope"`
	// Commit is the one that the volume started with.
	Commit object.ID `json:"commit"`
}

// In is the reading as of another scope.
func (r *Reading) In(scope string) *Reading {
	other := *r
	other.Scope = scope
	return &other
}

// Object names an object of the cluster.
type Object struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

// Target is where a volume is published, and to which pod.
type Target struct {
	Path     string `json:"path"` // Absolute.
	Pod      Object `json:"pod,omitzero"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Class is a class by its name, and the policy that it made; nil if it armed nothing.
type Class struct {
	Name   string         `json:"name,omitempty"`
	Policy *policy.Policy `json:"policy,omitempty"`
}

// Position is where a writeable volume is between its tree and its remote: all that has to
// outlive the process, but for the objects. It changes as a whole.
type Position struct {
	// Tree is the directory that was made for the tree; zero while none was.
	Tree Identity `json:"tree,omitzero"`
	// Tip is the commit that the tree holds but for what was not committed yet; zero while
	// the branch has none.
	Tip object.ID `json:"tip,omitzero"`
	// Base is the commit of the ref that Tip is built on; what is between them is the
	// volume's own. Zero where the remote had none.
	Base object.ID `json:"base,omitzero"`
	// Side is the commit that was last pushed to the side branch; zero if none was.
	Side object.ID `json:"side,omitzero"`
	// Diverged tells that pushes go to the side branch.
	Diverged bool `json:"diverged,omitempty"`
	// Leaving is what the side branch has to be at for it to be deleted: the volume is back
	// from it.
	Leaving object.ID `json:"leaving,omitzero"`
	// Left is the last of the volume's commits on a side branch that it is back from and that
	// stayed on the remote; zero if none did. The volume does not go on from there.
	Left object.ID `json:"left,omitzero"`
	// LeftAt is the commit of the ref that had all that is on the side branch of Leaving and
	// Left. Of a ref that was forced back from it neither is true any more: nothing else may
	// have what is there.
	LeftAt object.ID `json:"leftAt,omitzero"`
	// Followed tells that the ref existed once, so that its absence is a deletion.
	Followed bool `json:"followed,omitempty"`
	// Metadata is the commit with the volume's own record of modes and owners, MetadataBase
	// what the remote's ref was when it was built on it, and MetadataAgreed the commit in
	// which the ref's record had nothing of this volume that was not on the remote.
	Metadata       object.ID `json:"metadata,omitzero"`
	MetadataBase   object.ID `json:"metadataBase,omitzero"`
	MetadataAgreed object.ID `json:"metadataAgreed,omitzero"`
	// Partial tells that Metadata lacks some of what the tree has, as a record that is too
	// large to be written does: only a look at all of the tree tells what.
	Partial bool `json:"partial,omitempty"`
	// Replaying tells that files were put in place of which the metadata may not have been
	// replayed yet: what they look like is not the application's.
	Replaying bool `json:"replaying,omitempty"`
	// Late tells that the tree holds, on top of Tip, what the application wrote over what
	// upstream changed too, without having seen that. The volume has yet to diverge for it; once
	// it has, that has yet to be committed and pushed to the side branch.
	Late bool `json:"late,omitempty"`
	// Stopped tells that the last stop committed all of the tree.
	Stopped bool `json:"stopped,omitempty"`
	// Move is the move of the tree that was begun and may not be finished; nil: none.
	Move *Move `json:"move,omitempty"`
}

// Move is a tree on its way from one commit to another; see worktree.Intent.
type Move struct {
	From     object.ID `json:"from,omitzero"` // Commits, zero for none.
	To       object.ID `json:"to,omitzero"`
	FromTree object.ID `json:"fromTree,omitzero"`
	ToTree   object.ID `json:"toTree,omitzero"`
	Token    string    `json:"token"`
	// Then is the position once the tree holds To. It has no Move.
	Then Position `json:"then,omitzero"`
}

// HasUnpushed tells whether the position has commits that no push has taken, neither to
// the ref nor to the side branch.
func (p Position) HasUnpushed() bool { return p.Tip != p.Base && p.Tip != p.Side }

// HasUnrecorded tells whether the remote lacks the volume's own record of metadata.
func (p Position) HasUnrecorded() bool { return !p.Metadata.IsZero() && p.Metadata != p.MetadataBase }

// Owes tells whether there is anything to push: commits, the record of metadata, or that the
// side branch goes.
func (p Position) Owes() bool {
	return p.HasUnpushed() || p.HasUnrecorded() || !p.Leaving.IsZero()
}

// IsLateOnRef tells whether the volume has yet to diverge for what was late.
func (p Position) IsLateOnRef() bool { return p.Late && !p.Diverged }

// Published is what the remote has of the volume's commits, on the branch that it is on.
func (p Position) Published() object.ID {
	if p.Diverged && !p.Side.IsZero() {
		return p.Side
	}
	return p.Base
}
