package worktree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// onDisk is what a look at a file or link found. The zero Side is that of what a commit
// has no like for, or what is being changed: it equals nothing committed.
type onDisk struct {
	history.Side
	stat Stat
	racy bool
}

// looker tells what the disk has, in terms of a commit.
type looker struct {
	ctx    context.Context
	cursor *Cursor
	reader reader
	source Source
	memory *Memory
}

// sizedAt is the size above which a file is read only if what it may be has that size: an
// application may write a sparse file of any size.
const sizedAt = 16 << 20

// look looks at the entry name, no directory, of the directory where the cursor is, to find
// out whether it is one of those sides. It relies on what is remembered of path, unless
// path is empty.
func (l *looker) look(name, path string, seen descent.Stat, sides ...history.Side) (onDisk, error) {
	now := StatOf(seen)
	found := onDisk{stat: now}
	if seen.Mount || !now.isRegular() && !now.isLink() {
		return found, nil
	}
	if path != "" {
		e := l.memory.Entry(path)
		if e.Stat == now && !e.Racy && e.Left == 0 && e.Mode != 0 {
			found.Side = history.Side{Mode: e.Mode, ID: e.Blob}
			return found, nil
		}
	}
	if seen.Size > sizedAt && !l.maybe(seen.Size, sides) {
		return found, nil
	}
	start := time.Now()
	id, err := l.read(name, seen)
	switch {
	case errors.Is(err, errTorn), errors.Is(err, errUnreadable), errors.Is(err, descent.ErrMount):
		return found, nil
	case err != nil:
		return found, err
	}
	found.Side = history.Side{Mode: gitMode(now), ID: id}
	found.racy = now.Racy(start)
	return found, nil
}

// maybe tells whether one of the sides may have that size.
func (l *looker) maybe(size int64, sides []history.Side) bool {
	for _, side := range sides {
		if !side.Mode.IsFile() {
			continue
		}
		content, has, err := l.source.Reader(side.ID)
		if err != nil {
			return true // Of which the file itself may tell more.
		}
		_ = content.Close() // Nothing was read.
		if has == size {
			return true
		}
	}
	return false
}

func (l *looker) read(name string, seen descent.Stat) (object.ID, error) {
	l.reader.blobs = Hasher{}
	if StatOf(seen).isLink() {
		return l.reader.link(l.cursor.Here(), name, seen, object.ID{})
	}
	return l.reader.file(l.ctx, l.cursor.Here(), name, seen, object.ID{})
}

// only tells whether everything in the directory where the cursor is, which is at path
// or at one that is not remembered, is what the commit of that side has below s. What
// the commit has beyond that does not matter: it was removed already.
func (l *looker) only(s *spot, path string, side func(*spot) history.Side) (bool, error) {
	names, err := list(l.cursor.Here())
	if err != nil {
		return false, err
	}
	for _, name := range names {
		child := s.named[name]
		if child == nil {
			return false, nil
		}
		known := ""
		if path != "" {
			known = join(path, name)
		}
		if same, err := l.same(child, known, side); err != nil || !same {
			return false, err
		}
	}
	return true, l.ctx.Err()
}

// same is only for one entry of the directory where the cursor is.
func (l *looker) same(s *spot, path string, side func(*spot) history.Side) (bool, error) {
	seen, err := l.cursor.Here().Stat(s.name)
	switch {
	case descent.Vanished(err):
		return true, nil
	case err != nil:
		return false, readError("stat", err)
	case seen.Mount, seen.Fixed:
		return false, nil
	case !seen.Directory:
		found, err := l.look(s.name, path, seen, side(s))
		return found.Mode != 0 && found.Side == side(s), err
	}
	below := s
	switch mode := side(s).Mode; {
	case mode == object.Submodule:
		below = &spot{}
	case mode != 0 || len(s.below) == 0:
		return false, nil
	}
	if err := l.cursor.Enter(s.name); err != nil {
		return false, enterError(err)
	}
	same, err := l.only(below, path, side)
	if err != nil {
		return false, err
	}
	return same, l.cursor.Up()
}

// list gives the names in a directory, sorted.
func list(dir *descent.Directory) ([]string, error) {
	var names []string
	for {
		name, err := dir.Next()
		if errors.Is(err, descent.ErrEnd) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list a directory: %w", err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	// A directory that changes while it is listed may give a name twice.
	return slices.Compact(names), nil
}
