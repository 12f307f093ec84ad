package metadata

import "liken.sh/gitvolume/internal/object"

// Fresh is the modes that a fresh checkout gives, which no record repeats.
type Fresh struct {
	File, Executable, Directory uint32
}

// Plain is a checkout without a volume mount group. The modes of one with such a
// group, and those of the tree's root, are the caller's to name.
func Plain() Fresh { return Fresh{File: 0o644, Executable: 0o755, Directory: 0o755} }

// Seen is what the disk shows of one file.
type Seen struct {
	Kind Kind
	// Mode is the permission bits with setuid, setgid and sticky.
	Mode         uint32
	Owner, Group uint32
}

// ownerExecutes is the bit of a mode that git keeps.
const ownerExecutes = 0o100

// Entry is what a record has to say about a file in the directory parent, so that
// Replayed gives it again; the zero Entry when a fresh checkout would give it.
func (f Fresh) Entry(seen, parent Seen) Entry {
	entry := Entry{Kind: seen.Kind}
	gitMode := object.Regular
	if seen.Mode&ownerExecutes != 0 {
		gitMode = object.Executable
	}
	if seen.Kind != Link && seen.Mode != f.mode(seen.Kind, gitMode) {
		entry.Mode = Set(seen.Mode)
	}
	if seen.Owner != parent.Owner {
		entry.Owner = Set(seen.Owner)
	}
	if seen.Group != parent.Group {
		entry.Group = Set(seen.Group)
	}
	if entry.IsZero() {
		return Entry{}
	}
	return entry
}

// Replayed is what a file in the directory parent has to become: the entry's fields,
// and a fresh checkout's where it has none. kind and gitMode are those of the file in
// the tree; an entry about another kind of file counts for nothing. A link's Mode is 0.
//
// Where someone changed the executable bit by git alone, git's bit counts and the
// rest of the mode stays as private as the record says.
func (f Fresh) Replayed(entry Entry, kind Kind, gitMode object.Mode, parent Seen) Seen {
	seen := Seen{Kind: kind, Mode: f.mode(kind, gitMode), Owner: parent.Owner, Group: parent.Group}
	if entry.Kind != kind {
		return seen
	}
	if mode, ok := entry.Mode.Get(); ok {
		seen.Mode = mode
		switch executes := mode&ownerExecutes != 0; {
		case kind != File:
		case gitMode == object.Executable && !executes:
			seen.Mode |= ownerExecutes | mode&0o444>>2
		case gitMode != object.Executable && executes:
			seen.Mode &^= 0o111
		}
	}
	if owner, ok := entry.Owner.Get(); ok {
		seen.Owner = owner
	}
	if group, ok := entry.Group.Get(); ok {
		seen.Group = group
	}
	return seen
}

func (f Fresh) mode(kind Kind, gitMode object.Mode) uint32 {
	switch {
	case kind == Link:
		return 0
	case kind != File:
		return f.Directory
	case gitMode == object.Executable:
		return f.Executable
	}
	return f.File
}
