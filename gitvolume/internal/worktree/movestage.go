package worktree

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// enter brings the cursor to the directory at path, by the way as it is now. errVanished
// says that there is none.
func (mv *move) enter(path string) (*descent.Directory, error) {
	dir, err := mv.cursor.Go(path)
	if err == nil {
		err = mv.cursor.Check()
	}
	if errors.Is(err, ErrMoved) {
		mv.cursor.Forget()
		dir, err = mv.cursor.Go(path)
	}
	if descent.Vanished(err) || errors.Is(err, ErrMoved) || errors.Is(err, descent.ErrMount) {
		return nil, fmt.Errorf("enter %q: %w: %w", path, errVanished, err)
	}
	return dir, err
}

// stage makes what the units put in place, complete and durable, beside where it will
// be. A unit whose directory is gone is left out: see put.
func (mv *move) stage(units []*unit) error {
	for _, u := range units {
		if err := mv.ctx.Err(); err != nil {
			return err
		}
		err := mv.stageOne(u)
		u.made = err == nil || errors.Is(err, errVanished)
		if err != nil && !u.made {
			return fmt.Errorf("write %q: %w", u.path(), err)
		}
	}
	if mv.writer.unsynced {
		mv.writer.unsynced = false
		return mv.syncAll()
	}
	return nil
}

// syncAll makes the file system durable.
func (mv *move) syncAll() error {
	mv.cursor.Forget()
	if err := uninterrupted(func() error { return unix.Syncfs(mv.cursor.Here().Fd()) }); err != nil {
		return fmt.Errorf("make the tree durable: %w", err)
	}
	return nil
}

func (mv *move) stageOne(u *unit) error {
	if u.will == nothing {
		return nil
	}
	dir, err := mv.enter(u.dir)
	if err != nil {
		return err
	}
	mv.before("stage", u.path())
	parent, err := dir.Self()
	if err != nil {
		return fmt.Errorf("stat the directory: %w", err)
	}
	name := mv.intent.unfinished(partial, u.spot.name)
	if u.will == directory {
		err = mv.stageDirectory(u, name, u.path(), u.spot, parent)
	} else {
		err = mv.stageLeaf(u, name, parent)
	}
	if err != nil {
		return err
	}
	// A cursor that went through a directory of many levels has another handle now.
	err = renameNew(mv.cursor.Here().Fd(), name, mv.intent.unfinished(ready, u.spot.name))
	if err != nil {
		return makeError("make it ready", err)
	}
	return nil
}

func (mv *move) stageLeaf(u *unit, name string, parent descent.Stat) error {
	dir := mv.cursor.Here()
	a := attributesFor(u.spot.to.Mode, mv.Fresh, parent)
	if u.was == leaf {
		seen, err := dir.Stat(u.spot.name)
		if err != nil {
			return makeError("look at what is replaced", err)
		}
		u.looked = StatOf(seen)
		if a, err = attributesOf(dir, u.spot.name, seen, u.spot.to.Mode, mv.Fresh); err != nil {
			return err
		}
	}
	var err error
	u.staged, err = mv.writer.leaf(dir, name, u.spot.to, a)
	return err
}

// stageDirectory makes the directory name, which will be at path, and in it all that is
// new in s.
func (mv *move) stageDirectory(u *unit, name, path string, s *spot, parent descent.Stat) error {
	if err := mv.writer.directory(mv.cursor, name, parent); err != nil {
		return err
	}
	if err := mv.cursor.Enter(name); err != nil {
		return makeError("enter a new directory", err)
	}
	self, err := mv.cursor.Here().Self()
	if err != nil {
		return fmt.Errorf("stat a new directory: %w", err)
	}
	e := Entry{Stat: directoryStat(self), Mode: object.Directory}
	if s.to.Mode == object.Submodule {
		e.Mode, e.Blob = s.to.Mode, s.to.ID
	}
	u.edits = append(u.edits, Edit{path, e})
	for _, child := range s.below {
		if err := mv.stageIn(u, join(path, child.name), child, self); err != nil {
			return err
		}
	}
	if err := mv.writer.sync(mv.cursor.Here().Fd()); err != nil {
		return err
	}
	return mv.cursor.Up()
}

func (mv *move) stageIn(u *unit, path string, s *spot, parent descent.Stat) error {
	if err := mv.ctx.Err(); err != nil {
		return err
	}
	switch isNew := s.from == (history.Side{}) && s.to != (history.Side{}); {
	case isNew && s.to.Mode == object.Submodule, s.to.Mode == 0 && s.gaining:
		return mv.stageDirectory(u, s.name, path, s, parent)
	case isNew:
		made, err := mv.writer.leaf(mv.cursor.Here(), s.name, s.to, attributesFor(s.to.Mode, mv.Fresh, parent))
		if err != nil {
			return err
		}
		u.edits = append(u.edits, Edit{path, Entry{Stat: made.stat, Mode: made.Mode, Blob: made.ID, Racy: made.racy}})
	}
	return nil
}

// unstage removes what was staged, also when there is no time for more.
func (mv *move) unstage(units []*unit) error {
	for _, u := range units {
		if u.will == nothing {
			continue
		}
		found, err := mv.unstageOne(u)
		if err != nil {
			return err
		}
		mv.strayed = mv.strayed || u.made && !found
	}
	if mv.strayed {
		return mv.sweep((*sweep).clear)
	}
	return nil
}

// unstageOne tells whether there was anything to remove.
func (mv *move) unstageOne(u *unit) (found bool, err error) {
	ctx := context.WithoutCancel(mv.ctx)
	_, err = mv.enter(u.dir)
	if errors.Is(err, errVanished) {
		return false, nil
	}
	for _, state := range []byte{partial, ready} {
		if err != nil {
			break
		}
		name := mv.intent.unfinished(state, u.spot.name)
		if _, err := mv.cursor.Here().Stat(name); !descent.Vanished(err) {
			found = true
		}
		err = removeOwn(ctx, mv.cursor, name)
	}
	return found, err
}
