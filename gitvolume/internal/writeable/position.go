package writeable

import (
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/worktree"
)

// Position is where a volume is between its tree and its remote. It is all that has to
// outlive the process, but for the objects; whoever keeps it writes it down as a whole.
type Position struct {
	// Tip is the commit that the tree holds, but for what was written since. Zero: none
	// yet.
	Tip object.ID `json:"tip,omitzero"`
	// Base is the commit of the ref that Tip was built on: what lies between is the
	// volume's own and not on the ref yet. Zero while the remote had no commit.
	Base object.ID `json:"base,omitzero"`
	// Root is the directory that was made for the tree; zero while none was.
	Root Root `json:"root,omitzero"`
	// Followed says that the ref was there once: if it is not, somebody deleted it.
	Followed bool `json:"followed,omitempty"`
	// Diverged says that the volume goes on on its side branch, and Side is what it has
	// pushed there last.
	Diverged bool      `json:"diverged,omitempty"`
	Side     object.ID `json:"side,omitzero"`
	// Leaving is what the side branch has to be at for it to be deleted: the volume is back
	// from it.
	Leaving object.ID `json:"leaving,omitzero"`
	// Recorded is the commit with the volume's own metadata record, RemoteRecord the
	// remote's that it follows, and Agreed the one of which the record for the ref had
	// nothing of this volume that was not on the remote.
	Recorded     object.ID `json:"recorded,omitzero"`
	RemoteRecord object.ID `json:"remoteRecord,omitzero"`
	Agreed       object.ID `json:"agreed,omitzero"`
	// Replaying says that files were put in place of which the metadata may not have been
	// replayed yet: what they look like is not the application's.
	Replaying bool `json:"replaying,omitempty"`
	// Move is a move of the tree that was begun and is not finished.
	Move *Move `json:"move,omitempty"`
}

// Move is a move of the tree from one commit to another on its way.
type Move struct {
	Intent worktree.Intent `json:"intent"`
	// Then is the position when it is done.
	Then Position `json:"then"`
}

// branch is the full name of the branch that the volume is on.
func (v *Volume) branch() string {
	if v.position.Diverged {
		return v.Side
	}
	return v.Ref
}

// published is what the remote has of the volume's commits, on the branch that it is on.
func (p Position) published() object.ID {
	if p.Diverged && !p.Side.IsZero() {
		return p.Side
	}
	return p.Base
}

// unpushed tells whether the branch lacks a commit of the volume.
func (p Position) unpushed() bool {
	return p.Tip != p.published() || p.Diverged && p.Side.IsZero()
}

// unrecorded tells whether the remote lacks the volume's metadata record.
func (p Position) unrecorded() bool {
	return !p.Recorded.IsZero() && p.Recorded != p.RemoteRecord
}
