package watch

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// count counts the tree's directories, one more than are watched at most. It comes before
// notify is let at them: that would set up all of them, and take minutes to forget them,
// while the watches of every other tree stand still. A root that cannot be opened is left
// to notify, which cannot open it either.
func (w *Watch) count() (directories int) {
	dir, err := os.OpenFile(w.path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return 0
	}
	defer dir.Close()
	top, err := descent.Open(dir)
	if err != nil {
		return 0
	}
	// A tree that moves under the count counts as too many until the next look: whoever
	// writes it must not have it watched by keeping it from being counted.
	c := counter{most: w.trees.most}
	if descent.Walk(context.Background(), top, &c) != nil {
		return c.most + 1
	}
	return c.left + 1
}

// counted notes how many directories there are, and returns whether notify has to forget
// them. w.mu is held.
func (w *Watch) counted(directories int) (resigns bool) {
	before := w.tooMany || w.worn
	w.directories = directories
	w.tooMany = directories > w.trees.most
	return w.tooMany && !before
}

// grew notes that events told of directories that came, or went, and returns whether notify
// has to forget them all: until the owner looks there could be many more. What the events
// do not tell of, such as what was made in a directory before notify came to it, the next
// look at everything counts. w.mu is held.
func (w *Watch) grew(by int) (resigns bool) {
	if w.tooMany {
		return false
	}
	if resigns = w.counted(w.directories + by); resigns {
		w.stale = true
		w.pending.addEverything()
	}
	return resigns
}

var errTooMany = errors.New("more directories than are watched")

// counter visits directories until there are more than most. It counts all that notify
// watches, and so also those that are ignored, which the owner never tells of.
type counter struct {
	most int
	left int // Those that the visit is done with.
}

// Entry passes over what is no directory.
func (c *counter) Entry(_ context.Context, dir *descent.Directory, _ string) (enter bool, err error) {
	return dir.MayBeDirectory(), c.check(dir)
}

// Leave counts the directory name.
func (c *counter) Leave(dir *descent.Directory, _ string) error {
	c.left++
	return c.check(dir)
}

// Unreadable passes over a directory that notify cannot read either.
func (c *counter) Unreadable(string, error) error { return nil }

// check adds dir and those above it, which are not left yet.
func (c *counter) check(dir *descent.Directory) error {
	if c.left+dir.Depth()+1 > c.most {
		return errTooMany
	}
	return nil
}
