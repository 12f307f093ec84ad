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

// GC has git pack what the repository holds and remove old objects that no ref reaches.
// Refs stay loose: the driver makes and deletes them meanwhile by libgit2, which is not
// safe beside a git that packs them. It leaves the processor and the disk to others. A
// fetch into the repository waits for it.
func (c *Command) GC(ctx context.Context, dir string) error {
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
		return fmt.Errorf("collect garbage: %w", errors.Join(err, removeTemporary(dir, 0, unfinishedPacks()...)))
	}
	return nil
}
