package worktree

import (
	"errors"
	"fmt"
	"strings"

	"liken.sh/csicommon/descent"
)

// window is how many directories a cursor holds open, whatever the depth.
const window = 64

// ErrMoved says that a directory is no longer where the cursor came to it: it was
// renamed, or another one took its name. What was read below it may be of another
// place; starting again from the root is the remedy.
var ErrMoved = errors.New("directory was moved meanwhile")

// ErrName says that a path has an empty component, "." or "..", or a NUL in it.
var ErrName = errors.New("not a path below the root")

// Cursor is at one directory of a tree, and goes from there to others by handles. It
// costs a path about as much as the path differs from the one before. It is used by
// one goroutine.
type Cursor struct {
	tree *Tree
	// levels lead from the root to where the cursor is. The root's handle and those of
	// the lowest levels are open; levels 1 to shut have been closed.
	levels []level
	shut   int
}

// level is a directory on the way to where the cursor is; dir is nil while it is shut.
type level struct {
	name  string
	inode uint64
	dir   *descent.Directory
}

// Cursor starts at the root. The caller closes it.
func (t *Tree) Cursor() (*Cursor, error) {
	top, err := t.top()
	if err != nil {
		return nil, err
	}
	return &Cursor{tree: t, levels: []level{{inode: t.identity.Inode, dir: top}}}, nil
}

// Close frees all handles.
func (c *Cursor) Close() {
	for i := range c.levels {
		c.levels[i].close()
	}
	c.levels = nil
}

func (l *level) close() {
	if l.dir != nil {
		_ = l.dir.Close() // Opened for reading: there is nothing a close could lose.
		l.dir = nil
	}
}

// Here is the directory the cursor is at. Its handle is the cursor's, and good until
// the cursor moves. What it refers to may be elsewhere by now: see Check.
func (c *Cursor) Here() *descent.Directory { return c.levels[len(c.levels)-1].dir }

// Path is where the cursor came to the directory it is at, "." being the root.
func (c *Cursor) Path() string {
	names := make([]string, 0, len(c.levels))
	for _, l := range c.levels[1:] {
		names = append(names, l.name)
	}
	if len(names) == 0 {
		return "."
	}
	return strings.Join(names, "/")
}

// Depth is how many levels the cursor is below the root.
func (c *Cursor) Depth() int { return len(c.levels) - 1 }

// Enter goes to the directory name, one component, of the directory the cursor is at.
// On an error the cursor stays where it is; descent.Vanished tells of what is no
// directory, descent.ErrMount is a mount, ErrName a name that no directory can have.
func (c *Cursor) Enter(name string) error {
	if !isName(name) {
		return fmt.Errorf("enter %q: %w", name, ErrName)
	}
	child, err := c.Here().Enter(name)
	if err != nil {
		return fmt.Errorf("enter %q: %w", name, err)
	}
	self, err := child.Self()
	if err != nil {
		_ = child.Close()
		return fmt.Errorf("enter %q: %w", name, err)
	}
	c.levels = append(c.levels, level{name: name, inode: self.Inode, dir: child})
	if len(c.levels)-c.shut > window {
		c.shut++
		c.levels[c.shut].close()
	}
	return nil
}

// Up goes to the directory above. ErrMoved says that there is no way back to the one
// the cursor came from; the cursor is at the root then.
func (c *Cursor) Up() error { return c.climb(len(c.levels) - 1) }

// climb goes up until n levels are left.
func (c *Cursor) climb(n int) error {
	for i := n; i < len(c.levels); i++ {
		c.levels[i].close()
	}
	lost := c.levels[:n]
	c.levels = c.levels[:n]
	if n == 1 || c.Here() != nil {
		c.shut = min(c.shut, n-1)
		return nil
	}
	// Down from the root again; on the way only what belongs there is accepted.
	c.levels = append(make([]level, 0, cap(lost)), lost[0])
	c.shut = 0
	for _, l := range lost[1:] {
		err := c.Enter(l.name)
		if err == nil && c.levels[len(c.levels)-1].inode != l.inode || descent.Vanished(err) {
			err = ErrMoved
		}
		if err != nil {
			c.Forget()
			return fmt.Errorf("go back to %q: %w", l.name, err)
		}
	}
	return nil
}

// Go goes to the directory at path, "." being the root, over what the paths have in
// common. The errors are those of Enter; the cursor is then at the last directory above
// path that there is.
func (c *Cursor) Go(path string) (*descent.Directory, error) {
	at, rest := 1, path
	if path == "." {
		rest = ""
	}
	for rest != "" && at < len(c.levels) {
		name, more, _ := strings.Cut(rest, "/")
		if c.levels[at].name != name {
			break
		}
		at, rest = at+1, more
	}
	if err := c.climb(at); err != nil {
		return nil, err
	}
	for rest != "" {
		name, more, _ := strings.Cut(rest, "/")
		if err := c.Enter(name); err != nil {
			return nil, err
		}
		rest = more
	}
	return c.Here(), nil
}

// Still tells whether the directory the cursor is at is still where it came to it, as
// seen from the directory above. ErrMoved says that it is not.
func (c *Cursor) Still() error {
	last := len(c.levels) - 1
	if last == 0 {
		return nil
	}
	return c.still(last)
}

// Check is Still for all of the way down from the root, as far as it is held open.
func (c *Cursor) Check() error {
	for i := 1; i < len(c.levels); i++ {
		if err := c.still(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cursor) still(i int) error {
	parent, own := &c.levels[i-1], &c.levels[i]
	if parent.dir == nil {
		return nil
	}
	stat, err := parent.dir.Stat(own.name)
	switch {
	case descent.Vanished(err):
	case err != nil:
		return fmt.Errorf("look at %q again: %w", own.name, err)
	case stat.Directory && !stat.Mount && stat.Inode == own.inode:
		return nil
	}
	return fmt.Errorf("look at %q again: %w", own.name, ErrMoved)
}

// Forget goes to the root and lets go of all other handles: after directories were
// renamed or replaced, those would be of what was there before.
func (c *Cursor) Forget() {
	for i := 1; i < len(c.levels); i++ {
		c.levels[i].close()
	}
	c.levels = c.levels[:1]
	c.shut = 0
}
