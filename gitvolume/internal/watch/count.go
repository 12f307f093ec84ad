package watch

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// overgrown says whether the tree has more directories than are watched. It comes before
// notify is let at them: that would set up all of them, and take minutes to forget them,
// while the watches of every other tree stand still. A root that cannot be opened is left
// to notify, which cannot open it either.
func (w *Watch) overgrown() bool {
	dir, err := os.OpenFile(w.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer dir.Close()
	top, err := descent.Open(dir)
	if err != nil {
		return false
	}
	// A tree that moves under the count counts as too many until the next look: whoever
	// writes it must not have it watched by keeping it from being counted.
	return descent.Walk(context.Background(), top, &count{most: w.trees.most}) != nil
}

var errTooMany = errors.New("more directories than are watched")

// count visits directories until there are more than most. It counts all that notify
// watches, and so also those that are ignored, which the owner never tells of.
type count struct {
	most int
	left int // Those that the visit is done with.
}

// Entry passes over what is no directory.
func (c *count) Entry(_ context.Context, dir *descent.Directory, _ string) (enter bool, err error) {
	return dir.MayBeDirectory(), c.check(dir)
}

// Leave counts the directory name.
func (c *count) Leave(dir *descent.Directory, _ string) error {
	c.left++
	return c.check(dir)
}

// Unreadable passes over a directory that notify cannot read either.
func (c *count) Unreadable(string, error) error { return nil }

// check adds dir and those above it, which are not left yet.
func (c *count) check(dir *descent.Directory) error {
	if c.left+dir.Depth()+1 > c.most {
		return errTooMany
	}
	return nil
}
