package worktree

import (
	"fmt"

	"liken.sh/csicommon/descent"
	"liken.sh/gitvolume/internal/object"
)

// shape is what stands at a name.
type shape uint8

const (
	nothing   shape = iota
	leaf            // A file or a symbolic link.
	directory       // A directory; a submodule is one.
)

// unit is one thing to put in place, or to take away, by one rename.
type unit struct {
	dir  string // The path of the directory it is in.
	spot *spot
	// was is what has to be there still when it is done, as the commit before has it, and
	// will what is there afterwards.
	was, will shape
	// looked is what was there when it was looked at, if it is replaced.
	looked Stat
	// staged is the successor, unless that is a directory. made tells that it, or a part of
	// it, is on the disk, if the application left it there.
	staged onDisk
	made   bool
	// edits are what is to be remembered once it is done.
	edits []Edit
}

func (u *unit) path() string { return join(u.dir, u.spot.name) }

// check compares the disk with what two commits differ in. It changes nothing.
type check struct {
	looker
	units     []*unit
	conflicts []string
	edits     []Edit
	// emptied are directories in which something was that will not be, and nothing will
	// be that was not, each after those in it.
	emptied []string
}

// directory checks all of s below the directory at path, where the cursor is.
func (c *check) directory(path string, s *spot) error {
	self, err := c.cursor.Here().Self()
	if err != nil {
		return fmt.Errorf("look at %q: %w", path, err)
	}
	for _, child := range s.below {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		seen, err := c.cursor.Here().Stat(child.name)
		seen.Fixed = seen.Fixed || self.Fixed
		at := join(path, child.name)
		switch {
		case descent.Vanished(err):
			c.absent(path, child, self.Fixed)
			err = nil
		case err != nil:
			return fmt.Errorf("look at %q: %w", at, err)
		case seen.Mount:
			c.conflict(at)
		case seen.Directory:
			err = c.overDirectory(path, child, seen)
		default:
			err = c.overLeaf(path, child, seen)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *check) conflict(path string) { c.conflicts = append(c.conflicts, path) }

// has remembers what the disk has, which is what will be committed.
func (c *check) has(path string, found onDisk) {
	c.edits = append(c.edits, Edit{path, Entry{Stat: found.stat, Mode: found.Mode, Blob: found.ID, Racy: found.racy}})
}

func (c *check) put(path string, s *spot, was, will shape) *unit {
	u := &unit{dir: path, spot: s, was: was, will: will}
	c.units = append(c.units, u)
	return u
}

// absent is for a name at which nothing is, nor can be if that is fixed. What both removed
// is agreed upon.
func (c *check) absent(path string, s *spot, fixed bool) {
	if s.changing || s.from.Mode != 0 && s.to.Mode != 0 {
		s.each(join(path, s.name), func(path string, s *spot) {
			if s.from.Mode != 0 && s.to.Mode != 0 {
				c.conflict(path)
			}
		})
	}
	will := nothing
	switch {
	case s.to.Mode == object.Submodule && s.from.Mode == 0, s.to.Mode == 0 && s.gaining:
		will = directory
	case s.to.Mode != 0 && s.from.Mode == 0:
		will = leaf
	}
	switch {
	case will == nothing:
	case fixed:
		c.conflict(join(path, s.name))
	default:
		c.put(path, s, nothing, will)
	}
}

// overLeaf is for a name at which a file or link is, or what has no like in a commit.
func (c *check) overLeaf(path string, s *spot, seen descent.Stat) error {
	at := join(path, s.name)
	if s.from.Mode == 0 && s.to.Mode == 0 && !s.hasDirectory() {
		return nil // The application removed the directory, as upstream did.
	}
	found, err := c.look(s.name, at, seen, s.from, s.to)
	if err != nil {
		return err
	}
	switch isFrom := found.Mode != 0 && found.Side == s.from; {
	case found.Mode != 0 && found.Side == s.to:
		c.has(at, found)
	case !isFrom, seen.Fixed:
		c.conflict(at)
	case s.to.Mode == object.Submodule, s.to.Mode == 0 && s.hasDirectory():
		c.put(path, s, leaf, directory).looked = found.stat
	case s.to.Mode != 0:
		c.put(path, s, leaf, leaf).looked = found.stat
	default:
		c.put(path, s, leaf, nothing)
	}
	return nil
}

// overDirectory is for a name at which a directory is.
func (c *check) overDirectory(path string, s *spot, seen descent.Stat) error {
	at := join(path, s.name)
	stays := s.to.Mode == 0 || s.to.Mode == object.Submodule
	if s.from.Mode == object.Submodule && s.to.Mode == 0 && len(s.below) == 0 {
		c.emptied = append(c.emptied, at)
		return nil
	}
	if stays && len(s.below) == 0 {
		return nil // The application made a directory of a file that upstream removed.
	}
	if !stays && (seen.Fixed || !s.hadDirectory() && s.from.Mode != object.Submodule) {
		c.conflict(at)
		return nil
	}
	if err := c.cursor.Enter(s.name); err != nil {
		return enterError(err)
	}
	if err := c.inDirectory(at, s, stays); err != nil {
		return err
	}
	if !stays {
		if n := len(c.conflicts); n == 0 || c.conflicts[n-1] != at {
			c.put(path, s, directory, leaf)
		}
	} else if s.to.Mode == 0 && !s.hasDirectory() {
		c.emptied = append(c.emptied, at)
	}
	return c.cursor.Up()
}

// inDirectory is for the directory where the cursor is, that stays or makes way for a
// file: then all in it has to be of the commit before.
func (c *check) inDirectory(at string, s *spot, stays bool) error {
	if stays {
		return c.directory(at, s)
	}
	same, err := c.only(s, at, fromSide)
	if err == nil && !same {
		c.conflict(at)
	}
	return err
}

// toBe are the edits for all that differs, as far as it is not known what the disk has:
// each is looked at by the next scan.
func toBe(root *spot) []Edit {
	var edits []Edit
	root.each(".", func(path string, s *spot) {
		edits = append(edits, Edit{path, Entry{Mode: s.to.Mode, Blob: s.to.ID}})
	})
	return edits
}
