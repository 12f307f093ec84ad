package worktree

import (
	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/ignore"
	"liken.sh/gitvolume/internal/metadata"
)

// place is a directory that a scan is in.
type place struct {
	path string
	name string // Empty for the root.
	stat Stat   // Of the directory; see directoryStat.
	old  *folder
	seen *folder // nil if there is none of it.
	// above is the parent: owner and group of an entry are recorded where they differ
	// from the parent's. aboveChanged says that the parent had others before.
	above        metadata.Seen
	aboveChanged bool
	level        *ignore.Level
	rules        int // Bytes of ignore files that are in force here.
	levels       int // Bytes of memory that the levels on the way take.
	left         Reason
}

// directoryStat is what of a directory's Stat says something about the directory, and
// not about what is in it.
func directoryStat(seen descent.Stat) Stat {
	return Stat{Inode: seen.Inode, Mode: seen.Mode, Owner: seen.Owner, Group: seen.Group}
}

// seenOf is a file as the metadata sees it.
func seenOf(stat Stat) metadata.Seen {
	seen := metadata.Seen{Kind: metadata.File, Mode: stat.Mode & 0o7777, Owner: stat.Owner, Group: stat.Group}
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		seen.Kind = metadata.Directory
	case unix.S_IFLNK:
		seen.Kind, seen.Mode = metadata.Link, 0
	}
	return seen
}

// seenOfFolder is seenOf for one that is known to hold something committed, or not.
func seenOfFolder(stat Stat, count int) metadata.Seen {
	seen := seenOf(stat)
	if count == 0 {
		seen.Kind = metadata.Empty
	}
	return seen
}

// isKnown tells whether a Stat was remembered at all.
func (s Stat) isKnown() bool { return s.Inode != 0 }

// isNew tells whether what was remembered of the directory is not about this one, so
// that nothing in it can be relied on without a look.
func (p *place) isNew() bool { return p.old.stat.Inode != p.stat.Inode || p.old.left != 0 }

// ownerChanged tells whether entries of the directory have to be recorded anew, as its
// own owner or group is another.
func (p *place) ownerChanged() bool {
	return !p.old.stat.isKnown() || p.old.stat.Owner != p.stat.Owner || p.old.stat.Group != p.stat.Group
}

// leftBefore is why the directory was left out when it was looked at last.
func (p *place) leftBefore() Reason {
	if p.seen != nil {
		return p.seen.left
	}
	return p.old.left
}

// sameMetadata tells that a record has the same to say of both, under one parent.
func (s Stat) sameMetadata(other Stat) bool {
	return s.Mode == other.Mode && s.Owner == other.Owner && s.Group == other.Group
}
