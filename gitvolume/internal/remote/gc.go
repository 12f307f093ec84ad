package remote

import (
	"context"
	"errors"
	"fmt"
)

// pruneAge is how old an object that no ref reaches must be to go. Objects are written
// before the ref that names them, by milliseconds in the driver and by the time that a
// fetch takes to end in git, which keeps its packs from gc meanwhile.
const pruneAge = "6.hours.ago"

// ErrGaveWay says that the collection of garbage was ended before it was done.
var ErrGaveWay = errors.New("the collection of garbage gave way to a fetch that a pod waits for")

// GC has git pack what the repository holds and remove old objects that no ref reaches.
// Refs stay loose: the driver makes and deletes them meanwhile by libgit2, which is not
// safe beside a git that packs them. It leaves the processor and the disk to others, so that
// it can take long where there is much to do. A fetch into the repository waits for it; for
// one that somebody waits for it ends, with ErrGaveWay.
func (c *Command) GC(ctx context.Context, dir string) error {
	ctx, leave := c.collections.enter(ctx, dir)
	defer leave()
	unlock, err := c.repositories.Lock(ctx, dir)
	if err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	defer unlock()
	// --force passes by the note of a killed gc, whose process id may be anybody's after
	// the container's restart; there is no other gc while the repository is held.
	_, err = c.do(ctx, run{
		args: []string{"gc", "--quiet", "--force", "--prune=" + pruneAge}, dir: dir, idle: true,
		config: [][2]string{{"gc.autoDetach", "false"}, {"gc.packRefs", "false"}, {"gc.writeCommitGraph", "false"}, {"repack.writeBitmaps", "false"}},
	})
	if err != nil {
		// With a full disk, of all times, it must not leave a pack behind that nobody reads.
		if gaveWay := context.Cause(ctx); errors.Is(gaveWay, ErrGaveWay) {
			err = gaveWay
		}
		return fmt.Errorf("collect garbage: %w", errors.Join(err, removeTemporary(dir, 0, unfinishedPacks()...)))
	}
	return nil
}
