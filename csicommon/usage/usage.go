// Package usage measures how much a volume's directory uses, as du does, and
// keeps the result so that asking for it costs nothing.
//
// The directory was written by a hostile application. Measuring must NEVER
// follow a link, never cross a mount, never change anything, never need more
// memory than the bounds below whatever the tree is like, and never load the
// node: one walk at a time in the whole process (but for a few that hang in a
// disk that does not answer), at half of one core, and each volume at most once
// a minute.
package usage

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"

	"liken.sh/csicommon/descent"
)

const (
	// linked is how many inodes with several names are remembered, at some 50
	// bytes each, to count each once. Of further ones every name counts its share
	// of the inode, 1/links: that is exact where all names are in the tree, and
	// too little where some are outside.
	linked = 100_000
	// deepest is how many levels below its top a tree is measured: each level
	// that a walk is in takes up to 400 bytes.
	deepest = 10_000
)

// Usage is what the tree below a directory uses, the directory included.
type Usage struct {
	Bytes  int64 // Allocated blocks, not lengths; each inode once, however many names it has.
	Inodes int64 // Each inode once.
	// AtLeast is true when what lies deeper than 10,000 levels was left out.
	AtLeast bool
}

// Walk measures dir, which stays the caller's. It follows no link and enters
// no mount; a name that is the place of a mount counts nothing. Entries that
// vanish meanwhile are no error; entries that are renamed meanwhile may be
// counted twice or not at all. It holds at most some 64 handles whatever the
// depth; the error is descent.ErrMoved when a directory with more levels than
// that below it was moved meanwhile.
func Walk(ctx context.Context, dir *os.File) (Usage, error) {
	return walk(ctx, dir, func(ctx context.Context) error { return ctx.Err() })
}

// paced is Walk at half of one core at most. alive is told of each entry.
func paced(ctx context.Context, dir *os.File, alive *pulse) (Usage, error) {
	var pace descent.Pace
	return walk(ctx, dir, func(ctx context.Context) error {
		alive.rest() // Pausing is no sign of a disk that does not answer.
		defer alive.beat()
		return pace.Step(ctx)
	})
}

func walk(ctx context.Context, dir *os.File, step func(context.Context) error) (Usage, error) {
	top, err := descent.Open(dir)
	if err != nil {
		return Usage{}, err
	}
	self, err := top.Self()
	if err != nil {
		return Usage{}, errors.Join(fmt.Errorf("stat directory %q: %w", dir.Name(), err), top.Close())
	}
	count := &count{step: step, links: map[inode]uint32{}}
	count.add(self)
	if err := descent.Walk(ctx, top, count); err != nil {
		return Usage{}, err
	}
	return count.sum(), nil
}

type inode struct{ device, number uint64 }

// count is the visitor that adds up.
type count struct {
	step  func(context.Context) error
	total Usage
	// links holds, for each inode met that has several names, how many of them
	// are still to be met; with the last one it is dropped, so that the map
	// holds no more than the inodes it is needed for.
	links map[inode]uint32
	// full is set for good once links has been: an inode whose first name counted
	// a share must not count as a whole when another one is met.
	full bool
	// What the shares of the others add up to.
	sharedBytes, sharedInodes float64
}

// Entry counts name.
func (c *count) Entry(ctx context.Context, dir *descent.Directory, name string) (bool, error) {
	if err := c.step(ctx); err != nil {
		return false, err
	}
	stat, err := dir.Stat(name)
	if descent.Vanished(err) || err == nil && stat.Mount {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stat %q: %w", dir.Path(name), err)
	}
	c.add(stat)
	if stat.Directory && dir.Depth() >= deepest {
		c.total.AtLeast = true
		return false, nil
	}
	return stat.Directory, nil
}

// Leave has nothing left to do: a directory was counted when it was met.
func (c *count) Leave(*descent.Directory, string) error { return nil }

// Unreadable ends the walk: a sum with a part missing is no measurement.
func (c *count) Unreadable(path string, err error) error {
	if errors.Is(err, descent.ErrMount) {
		return nil // Mounted between Entry and now.
	}
	return fmt.Errorf("measure %q: %w", path, err)
}

func (c *count) add(stat descent.Stat) {
	// A directory's links are its subdirectories, not further names.
	if stat.Links > 1 && !stat.Directory {
		key := inode{stat.Device, stat.Inode}
		left, met := c.links[key]
		switch {
		case met && left > 1:
			c.links[key] = left - 1
			return
		case met:
			delete(c.links, key)
			return
		case c.full || len(c.links) >= linked:
			c.full = true
			c.sharedBytes += float64(stat.Bytes) / float64(stat.Links)
			c.sharedInodes += 1 / float64(stat.Links)
			return
		}
		c.links[key] = stat.Links - 1
	}
	c.total.Bytes += stat.Bytes
	c.total.Inodes++
}

func (c *count) sum() Usage {
	total := c.total
	total.Bytes += int64(math.Round(c.sharedBytes))
	total.Inodes += int64(math.Round(c.sharedInodes))
	return total
}
