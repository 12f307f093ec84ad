package worktree

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/metadata"
)

// GroupFresh is the modes of a fresh checkout that belongs to a volume mount group:
// everything is open to the group, and what is made in a directory is the group's.
func GroupFresh() metadata.Fresh {
	return metadata.Fresh{File: 0o664, Executable: 0o775, Directory: 0o2775}
}

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
	cursor, err := t.Cursor()
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	root, err := cursor.Here().Self()
	if err != nil {
		return nil, fmt.Errorf("stat the root: %w", err)
	}
	if root.Group == group && root.Mode&groupDirectory == groupDirectory {
		return memory, nil
	}
	g := &giving{replay: replay{Replay: Replay{Memory: memory}, ctx: ctx, cursor: cursor}, group: group}
	err = g.directory(metadata.Root)
	if err == nil {
		// What is the group's has to be durable before the root says that it is.
		err = uninterrupted(func() error { return unix.Syncfs(cursor.Here().Fd()) })
	}
	if err == nil {
		err = g.give(cursor.Here().Fd(), metadata.Root, root)
	}
	if err != nil {
		return nil, fmt.Errorf("give the tree to the group %d: %w", group, err)
	}
	return memory.With(g.edits), nil
}

// giving gives a tree to a group.
type giving struct {
	replay
	group uint32
}

// directory gives what is in the directory at path, where the cursor is.
func (g *giving) directory(path string) error {
	names, err := list(g.cursor.Here())
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := g.ctx.Err(); err != nil {
			return err
		}
		if err := g.entry(join(path, name), name); err != nil {
			return err
		}
	}
	return nil
}

func (g *giving) entry(path, name string) error {
	dir := g.cursor.Here()
	fd, err := openPath(dir.Fd(), name)
	if isGone(err) || errors.Is(err, unix.EXDEV) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	seen, err := dir.Look(fd)
	if err == nil && !seen.Mount {
		err = g.give(fd, path, seen)
	}
	_ = unix.Close(fd)
	if err != nil || seen.Mount || !seen.Directory {
		return err
	}
	err = g.cursor.Enter(name)
	if isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := g.directory(path); err != nil {
		return err
	}
	return g.cursor.Up()
}

// give gives one file to the group.
func (g *giving) give(fd int, path string, seen descent.Stat) error {
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
		return fmt.Errorf("give %q: %w", path, err)
	}
	after, err := g.cursor.Here().Look(fd)
	if err != nil {
		return fmt.Errorf("stat %q: %w", path, err)
	}
	known := g.Memory.Entry(path)
	if known.isZero() && path != metadata.Root {
		return nil
	}
	g.remember(path, before, StatOf(after), known)
	return nil
}
