package worktree

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/history"
)

// resume brings the move to its end after a crash.
func (mv *move) resume() (*Moved, error) {
	if err := mv.sweep((*sweep).clear); err != nil {
		return nil, err
	}
	c, err := mv.check()
	if err != nil {
		return nil, err
	}
	if err := mv.stage(c.units); err != nil {
		return nil, err
	}
	return mv.finish(c)
}

// sweep goes through the whole tree, as an application may have moved directories with
// unfinished files in them, and clears those away, each by one call.
func (mv *move) sweep(clearOne func(s *sweep, path, name string) error) error {
	s := sweep{move: mv, made: map[string][]*spot{}, clearOne: clearOne}
	s.index(mv.root)
	// The root is listed from its beginning.
	cursor, err := mv.Tree.Cursor()
	if err != nil {
		return err
	}
	mv.cursor.Close()
	mv.cursor = cursor
	if err := s.directory(); err != nil {
		return fmt.Errorf("look for unfinished files: %w", err)
	}
	return nil
}

type sweep struct {
	*move
	// made is for which spots an unfinished file of that name may have been made.
	made map[string][]*spot
	// clearOne clears one unfinished file away.
	clearOne func(s *sweep, path, name string) error
}

func (s *sweep) index(at *spot) {
	for _, child := range at.below {
		name := s.intent.unfinished(ready, child.name)
		s.made[name] = append(s.made[name], child)
		s.index(child)
	}
}

// directory sweeps the directory where the cursor is, and leaves it there. What the
// application moved deeper than any path of a commit stays there.
func (s *sweep) directory() error {
	names, err := list(s.cursor.Here())
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if s.intent.Own(name) {
			path := s.cursor.Path()
			if err := s.clearOne(s, path, name); err != nil {
				return fmt.Errorf("clear away %q: %w", join(path, name), err)
			}
			continue
		}
		if err := s.entry(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *sweep) entry(name string) error {
	seen, err := s.cursor.Here().Stat(name)
	if err != nil && !descent.Vanished(err) {
		return fmt.Errorf("stat %q: %w", name, err)
	}
	if err != nil || !seen.Directory || seen.Mount || s.cursor.Depth() >= maxDepth {
		return nil //nolint:nilerr // What vanished has nothing to be cleared away.
	}
	err = s.cursor.Enter(name)
	if descent.Vanished(err) || errors.Is(err, descent.ErrMount) || errors.Is(err, unix.EACCES) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.directory(); err != nil {
		return err
	}
	return s.cursor.Up()
}

// clear clears one unfinished file away from the directory at path, where the cursor is.
func (s *sweep) clear(path, name string) error {
	s.touched[path] = true
	if s.intent.isPartial(name) {
		return removeOwn(s.ctx, s.cursor, name)
	}
	// What equals the like of it elsewhere is not ours for that.
	at := s.made[name]
	here := s.here(path, name)
	if here != nil {
		at = []*spot{here}
	}
	for _, at := range at {
		ours, err := s.holds(at, name)
		if err != nil {
			return err
		}
		if ours {
			return removeOwn(s.ctx, s.cursor, name)
		}
	}
	if here != nil {
		return s.restore(path, name, here)
	}
	return s.keep(path, name) // The application moved it elsewhere.
}

// here is the spot in the directory at path for which an unfinished file of that name was
// made, nil if there is none.
func (s *sweep) here(path, name string) *spot {
	if dir := s.root.find(path); dir != nil {
		for _, at := range dir.below {
			if s.intent.unfinished(ready, at.name) == name {
				return at
			}
		}
	}
	return nil
}

// holds tells whether all that an unfinished file holds is what one of the commits has at
// a spot.
func (s *sweep) holds(at *spot, name string) (bool, error) {
	for _, side := range []func(*spot) history.Side{fromSide, toSide} {
		if same, err := s.isSide(at, name, side); err != nil || same {
			return same, err
		}
	}
	return false, nil
}

// isSide tells whether the entry name holds what that commit has at a spot.
func (s *sweep) isSide(at *spot, name string, side func(*spot) history.Side) (bool, error) {
	l := s.looker()
	as := *at
	as.name = name
	return l.same(&as, "", side)
}

// restore puts back what the application wrote in the moment before the crash, if what
// was put in its place is still there.
func (s *sweep) restore(path, name string, at *spot) error {
	dir := s.cursor.Here()
	seen, err := dir.Stat(at.name)
	if descent.Vanished(err) {
		err := renameNew(dir.Fd(), name, at.name)
		if errors.Is(err, unix.EEXIST) {
			return s.keep(path, name)
		}
		if descent.Vanished(err) {
			return nil
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("stat: %w", err)
	}
	if at.to.Mode == 0 && !at.gaining {
		return s.keep(path, name) // It was to be removed, and the application wrote it anew.
	}
	ours, err := s.isSide(at, at.name, toSide)
	if err != nil {
		return err
	}
	if !ours || seen.Mount {
		return s.keep(path, name)
	}
	return s.replace(path, name, at)
}

// replace puts back what the application wrote for what was put in its place, unless it
// wrote there again in that moment: then both are kept, as in putBack.
func (s *sweep) replace(path, name string, at *spot) error {
	s.before("replace", join(path, at.name))
	if err := exchange(s.cursor.Here().Fd(), name, at.name); err != nil {
		return err
	}
	ours, err := s.isSide(at, name, toSide)
	if err != nil {
		return err
	}
	if ours {
		return removeOwn(s.ctx, s.cursor, name)
	}
	if err := exchange(s.cursor.Here().Fd(), name, at.name); err != nil && !descent.Vanished(err) {
		return err
	}
	return s.keep(path, name)
}
