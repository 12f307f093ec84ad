package writeable

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/watch"
	"liken.sh/gitvolume/internal/worktree"
)

// look finds out what there would be to commit, and keeps nothing of it. unread is what
// could not be read, because it was being written.
func (v *Volume) look(ctx context.Context) (unread []string, err error) {
	result, err := v.scan(ctx, worktree.Hasher{})
	if err != nil {
		return nil, err
	}
	unread = result.Waiting
	if v.unrecorded, err = v.changesRecord(result.Metadata); err != nil {
		return nil, fmt.Errorf("compare the metadata: %w", err)
	}
	v.seen = result.Memory
	v.pending, v.pendingPath = len(result.Changes), ""
	if v.pending > 0 {
		v.pendingPath = result.Changes[0].Path
	}
	if v.Pending != nil && v.Arming.Unarmed != nil {
		v.Pending(v.lines(result.Changes))
	}
	if err := v.noteLate(result, v.pending == 0); err != nil {
		return nil, err
	}
	v.looked(result)
	return unread, nil
}

// changesRecord tells whether a commit of what was found would change the record of modes,
// owners and empty directories.
func (v *Volume) changesRecord(found metadata.Delta) (bool, error) {
	if len(found) == 0 && !v.position.Partial || v.Arming.Unarmed != nil || !v.keepsRecord() {
		return false, nil //nolint:nilerr // It is why nothing is to be committed.
	}
	record, err := v.record.Apply(found)
	if err != nil {
		return false, err
	}
	return !record.Equal(v.record) || v.position.Partial && record.Fits(), nil
}

// looked ends a look at the tree: what waits is looked at again.
func (v *Volume) looked(result *worktree.Result) {
	v.clock.looked()
	v.sayLooked(result)
	v.agenda.addSubtrees(result.Waiting)
	if len(result.Waiting) > 0 {
		v.clock.wrote(time.Now())
	}
	if result.Bulky() {
		*result = worktree.Result{}
		debug.FreeOSMemory() // Nothing else gives it back for minutes.
	}
}

// scan looks at what is on the agenda, which stays on it, and tells the watch what came of
// it.
func (v *Volume) scan(ctx context.Context, blobs worktree.Blobs) (*worktree.Result, error) {
	began := time.Now()
	var hint watch.Hint
	if v.watch != nil {
		if v.agenda.everything {
			// Whoever looks at everything can tell which watches are missing.
			hint = v.watch.TakeAll()
		} else {
			hint = v.watch.Take()
		}
		v.agenda.add(hint)
	}
	defer v.Keeper.Native()()
	paths, subtrees := v.agenda.lists()
	result, err := v.tree.Scan(ctx, worktree.Request{
		Memory: v.memory, Seen: v.seen, Paths: paths, Subtrees: subtrees,
		Class: v.class, MaxFileSize: v.Arming.Policy.MaxFileSize, Blobs: blobs,
		Fresh: v.Fresh, Root: v.Root, Own: v.own,
	})
	if replaced := v.checkRoot(); replaced != nil {
		return nil, replaced
	}
	if err != nil {
		return nil, fmt.Errorf("look at the tree: %w", err)
	}
	if v.ForeignRoot {
		delete(result.Metadata, metadata.Root)
	}
	if v.watch != nil {
		v.tell(hint, result)
	}
	if v.agenda.everything {
		v.clock.scanned, v.clock.cost = time.Now(), time.Since(began)
	}
	return result, nil
}

// tell tells the watch what a look at its hint found.
func (v *Volume) tell(hint watch.Hint, result *worktree.Result) {
	if hint.Everything {
		if !v.unannounced {
			for _, path := range result.Found {
				v.watch.Found(hint, path)
			}
		}
		v.unannounced = false
		v.watch.Check(hint, v.directories(result.Memory, []string{metadata.Root}))
	} else if len(hint.Subtrees) > 0 {
		v.watch.Check(hint, v.directories(result.Memory, hint.Subtrees))
	}
	v.sayWatch(v.watch.State())
}

// directories are those in and below some, as the watch knows directories.
func (v *Volume) directories(memory *worktree.Memory, below []string) iter.Seq2[string, watch.Inode] {
	device := v.tree.Identity().Device
	return func(yield func(string, watch.Inode) bool) {
		for _, top := range below {
			for path, inode := range memory.Directories(top) {
				if !yield(path, watch.Inode{Device: device, Number: inode}) {
					return
				}
			}
		}
	}
}
