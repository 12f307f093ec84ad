package worktree

import (
	"errors"
	"fmt"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/ignore"
	"liken.sh/gitvolume/internal/object"
)

// child is a directory that is still to be entered.
type child struct {
	name string
	stat descent.Stat
	old  slot
}

// descend scans the directory at an entry of p, where the cursor is and will be again.
func (s *scan) descend(p *place, d child, sc *scope) (slot, error) {
	path := join(p.path, d.name)
	for range attempts {
		m := s.mark()
		became, err := s.visit(p, d, path, sc)
		if err == nil {
			return became, nil
		}
		if !errors.Is(err, ErrMoved) && !errors.Is(err, errTorn) && !errors.Is(err, errUnreadable) {
			return slot{}, err
		}
		s.rollback(m)
		if err := s.back(p); err != nil {
			return slot{}, err
		}
		if errors.Is(err, errUnreadable) {
			return s.hidden(p, d.name, directoryStat(d.stat), Unreadable, d.old), nil
		}
		stat, err := s.cursor.Here().Stat(d.name)
		if err != nil || !stat.Directory {
			return s.entry(p, d.name, stat, err, d.old)
		}
		d.stat = stat
	}
	s.waiting = append(s.waiting, path)
	return d.old, nil
}

// back brings the cursor to p from wherever it was lost. ErrMoved says that p itself is
// no longer where it was.
func (s *scan) back(p *place) error {
	here, err := s.cursor.Go(p.path)
	if err != nil {
		// The way it knew is of no use any more.
		s.cursor.Forget()
		here, err = s.cursor.Go(p.path)
	}
	if err != nil {
		return wayError(err)
	}
	self, err := here.Self()
	if err != nil {
		return wayError(err)
	}
	if self.Inode != p.stat.Inode {
		return ErrMoved
	}
	return nil
}

// visit is one attempt of descend. After an error the cursor is anywhere.
func (s *scan) visit(p *place, d child, path string, sc *scope) (slot, error) {
	if d.old.folder == nil || d.old.folder.count == 0 {
		if s.isOwn(d.name) {
			return slot{}, nil
		}
		if p.level.Ignored(d.name, true).Ignored() && !d.old.isBarred() {
			s.forget(path, d.old)
			return slot{}, nil
		}
	}
	s.findDirectory(p, d, path)
	switch {
	case d.stat.Mount:
		return s.hidden(p, d.name, directoryStat(d.stat), Mount, d.old), nil
	case s.unfit(d.name, path, object.Directory):
		return s.hidden(p, d.name, directoryStat(d.stat), Name, d.old), nil
	}
	if d.old.file != nil {
		s.forget(path, slot{file: d.old.file})
	}
	after, err := s.inside(p, d, path, sc)
	if errors.Is(err, descent.ErrMount) {
		return s.hidden(p, d.name, directoryStat(d.stat), Mount, slot{folder: d.old.folder}), nil
	}
	if err == nil && after.count == 0 && p.level.Ignored(d.name, true).Ignored() {
		// The last of what was tracked in it is gone.
		s.forget(path, slot{folder: after})
		return slot{}, nil
	}
	return slot{folder: after}, err
}

// inside enters the directory, scans it and comes back.
func (s *scan) inside(p *place, d child, path string, sc *scope) (*folder, error) {
	if err := s.cursor.Enter(d.name); err != nil {
		return nil, enterError(err)
	}
	if self, err := s.cursor.Here().Self(); err != nil || self.Inode != d.stat.Inode {
		return nil, errors.Join(ErrMoved, err)
	}
	c := &place{path: path, name: d.name, stat: directoryStat(d.stat), old: d.old.folder, seen: p.seen.sub(d.name)}
	if c.old == nil {
		c.old = &folder{}
	}
	c.above, c.aboveChanged, c.rules = seenOf(p.stat), p.ownerChanged(), p.rules
	if err := s.level(p, c); err != nil {
		return nil, err
	}
	after, err := s.directory(c, sc)
	if err != nil {
		return nil, err
	}
	if err := s.cursor.Still(); err != nil {
		return nil, wayError(err)
	}
	if err := s.cursor.Up(); err != nil {
		return nil, wayError(err)
	}
	return after, nil
}

// level gives the directory c in p its ignore rules.
func (s *scan) level(p, c *place) error {
	if p.level.Ignored(c.name, true).Ignored() {
		c.level = p.level.Enter(c.name, ignore.Patterns{})
		return nil
	}
	own, err := s.rules(c)
	if err != nil {
		return err
	}
	c.level = p.level.Enter(c.name, own)
	if c.levels = p.levels + c.level.Size(); c.levels > maxLevels {
		c.level = ignore.Root(ignore.Patterns{}, s.closed(c))
	}
	return nil
}

// enterError is readError for a directory.
func enterError(err error) error {
	switch {
	case errors.Is(err, ErrMoved):
		return err
	case errors.Is(err, descent.ErrMount):
		return descent.ErrMount
	case descent.Vanished(err):
		return fmt.Errorf("%w: %w", ErrMoved, err)
	}
	return readError("enter", err)
}

// wayError is enterError for directories above the one in question: what is a mount by
// now was moved away, for whoever was below it.
func wayError(err error) error {
	if err = enterError(err); errors.Is(err, descent.ErrMount) {
		return ErrMoved
	}
	return err
}
