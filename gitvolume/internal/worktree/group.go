package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/metadata"
)

// GroupFresh is the modes of a fresh checkout that belongs to a volume mount group:
// everything is open to the group, and what is made in a directory is the group's.
func GroupFresh() metadata.Fresh {
	return metadata.Fresh{File: 0o664, Executable: 0o775, Directory: 0o2775}
}

// GroupRoot is the mode of the root of a fresh tree that belongs to a volume mount group.
const GroupRoot = WriteableRoot | 0o2000

// What a mode has at least in a tree that belongs to a group.
const (
	groupFile       = 0o060
	groupExecutable = 0o070
	groupDirectory  = 0o2070
)

// GiveToGroup gives the tree to a volume mount group, unless its root is the group's
// already: the root is the last to become so, and what was interrupted before starts
// anew. It gives what is to be remembered, in which nothing of that is a change of the
// application's; the same Memory if nothing was done. No link is followed and no mount
// entered.
func (t *Tree) GiveToGroup(ctx context.Context, group uint32, memory *Memory) (*Memory, error) {
	edits, err := t.giveTo(ctx, group, memory)
	if err != nil {
		return nil, fmt.Errorf("give the tree to the group %d: %w", group, err)
	}
	if len(edits) == 0 {
		return memory, nil
	}
	return memory.With(edits), nil
}

func (t *Tree) giveTo(ctx context.Context, group uint32, memory *Memory) ([]Edit, error) {
	top, err := t.top()
	if err != nil {
		return nil, err
	}
	defer top.Close()
	root, err := top.Self()
	if err != nil {
		return nil, fmt.Errorf("stat the root: %w", err)
	}
	if root.Group == group && root.Mode&groupDirectory == groupDirectory {
		return nil, nil
	}
	below, err := t.top()
	if err != nil {
		return nil, err
	}
	g := &giving{group: group, known: []*folder{memory.top()}}
	if err := descent.Walk(ctx, below, g); err != nil {
		return nil, err
	}
	// What is the group's has to be durable before the root says that it is.
	if err := uninterrupted(func() error { return unix.Syncfs(top.Fd()) }); err != nil {
		return nil, err
	}
	g.known = g.known[:1]
	return g.edits, g.give(top, top.Fd(), "", root, memory.top().entry())
}

// giving gives a tree to a group, of any depth: it holds no path.
type giving struct {
	replay
	group uint32
	// known are what is remembered of the root and of each directory on the way down to
	// the one that is visited, nil where nothing is.
	known []*folder
}

// Entry gives one entry of the directory to the group.
func (g *giving) Entry(ctx context.Context, dir *descent.Directory, name string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	g.known = g.known[:dir.Depth()+1]
	here := g.known[dir.Depth()]
	fd, err := openPath(dir.Fd(), name)
	if isGone(err) || errors.Is(err, unix.EXDEV) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open %q: %w", dir.Path(name), err)
	}
	defer unix.Close(fd)
	seen, err := dir.Look(fd)
	if err != nil || seen.Mount {
		return false, err
	}
	sub := here.sub(name)
	known := Entry{}
	if sub != nil {
		known = sub.entry()
	} else if file := here.file(name); file != nil {
		known = file.entry()
	}
	if err := g.give(dir, fd, name, seen, known); err != nil {
		return false, fmt.Errorf("give %q: %w", dir.Path(name), err)
	}
	g.known = append(g.known, sub)
	return seen.Directory, nil
}

// Leave has nothing to do.
func (*giving) Leave(*descent.Directory, string) error { return nil }

// Unreadable tells of a directory that could not be given to the group in whole.
func (*giving) Unreadable(path string, err error) error {
	if isMount(err) {
		return nil
	}
	return fmt.Errorf("read %q: %w", path, err)
}

// give gives the entry name of the directory, or the root if that is empty, to the group.
func (g *giving) give(dir *descent.Directory, fd int, name string, seen descent.Stat, known Entry) error {
	before := StatOf(seen)
	mode := before.Mode & 0o7777
	switch {
	case before.isDirectory():
		mode |= groupDirectory
	case mode&unix.S_IXUSR != 0:
		mode |= groupExecutable
	default:
		mode |= groupFile
	}
	if err := setMetadata(fd, before, before.Owner, g.group, mode); err != nil {
		return err
	}
	after, err := dir.Look(fd)
	if err != nil {
		return err
	}
	if !known.isZero() {
		g.remember(g.path(name), before, StatOf(after), known)
	}
	return nil
}

// path is that of an entry of the directory that is visited, of which something is
// remembered.
func (g *giving) path(name string) string {
	if name == "" {
		return metadata.Root
	}
	names := make([]string, 0, len(g.known))
	for _, f := range g.known[1:] {
		names = append(names, f.name)
	}
	return strings.Join(append(names, name), "/")
}
