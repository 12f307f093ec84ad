package watch

import (
	"iter"
	"path/filepath"
	"time"
)

// confirmed is how many directories have to be seen without a watch before the rest
// that seem so are believed.
const confirmed = 100

// patience is how long notify is given to watch a directory that it just learnt of.
func patience() []time.Duration {
	return []time.Duration{0, 10 * time.Millisecond, 40 * time.Millisecond, 100 * time.Millisecond}
}

// Take takes what is pending. A hint to look at everything, or at subtrees, first has
// the watches repaired where they are known to be wrong, and is to be followed by
// Check when the owner has looked.
func (w *Watch) Take() Hint {
	w.mu.Lock()
	subtrees := len(w.pending.subtrees) > 0
	w.mu.Unlock()
	// Before the owner looks: of a directory whose watch comes later, changes may be
	// missed that come after the look.
	var held held
	if subtrees {
		held = w.held()
	}
	w.mu.Lock()
	if w.pending.everything {
		w.mu.Unlock()
		return w.TakeAll()
	}
	defer w.mu.Unlock()
	h := w.take()
	h.held = held
	return h
}

// TakeAll is Take for an owner that looks at everything of its own accord.
func (w *Watch) TakeAll() Hint {
	directories := w.count()
	w.mu.Lock()
	resigns := w.counted(directories)
	repair := (w.stale || w.missing > 0) && !w.tooMany && !w.worn
	if repair && !w.renewable() {
		w.stale, w.putOff = true, true
		repair = false
	}
	w.checkRoot()
	repair = repair && !w.gone
	w.mu.Unlock()

	switch {
	case resigns:
		w.unwatch()
	case repair:
		w.renew()
	}

	held := w.held()
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.take()
	h.Everything, h.Subtrees, h.Paths = true, nil, nil
	h.renewed, h.held = repair, held
	return h
}

// take empties what is pending into a hint. w.mu is held.
func (w *Watch) take() Hint {
	w.checkRoot()
	h := w.pending.hint()
	w.pending = pending{}
	w.names.looks()
	h.Gone, h.losses, h.misses = w.gone, w.losses, w.misses
	return h
}

// checkRoot looks whether the root is still itself. Its own events are no reason to do
// without: a root that somebody holds open has none when it is removed. w.mu is held.
func (w *Watch) checkRoot() {
	now, err := inodeOf(w.root)
	w.gone = w.gone || err != nil || now != w.self
}

// Check compares the directories that a look at the hint saw, by their paths, with
// the watches that the kernel holds, and says how many have none. After a hint to
// look at everything these have to be all the directories of the tree.
//
// A tree of more than 16,384 directories, whether the owner sees them or not, is not
// watched, until a look at everything begins with fewer; nor is one any more in which so
// many came and went that notify keeps 65,536 names of them. What else Check finds it sees
// to: a directory whose watch came only after the look is pending again, and when some have
// no watch, everything is, once the watches can be set up anew. It waits a moment for
// notify where a watch is not there yet.
func (w *Watch) Check(h Hint, dirs iter.Seq2[string, Inode]) (missing int) {
	bare := map[string]Inode{}
	var seen []uint64
	for path, inode := range dirs {
		seen = append(seen, w.names.hash(path))
		if !h.held.has(inode) {
			bare[path] = inode
		}
	}
	if w.resigns(h, seen) {
		return len(seen)
	}
	late := w.settle(bare)

	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range late {
		w.pending.addSubtree(path)
		w.signal()
	}
	missing = len(bare)
	switch {
	case missing > 0:
		w.missing = missing
		w.stale = true
		// A set-up that changed nothing is not to be repeated at once: a limit is
		// reached. The owner scans while the watch is degraded, and each scan tries.
		if !h.renewed && w.renewable() {
			w.pending.addEverything()
			w.signal()
		}
	case h.Everything:
		w.missing = 0
		w.clear(h)
	}
	return missing
}

// resigns says whether a tree of such directories, by their hashes, is not watched at all.
func (w *Watch) resigns(h Hint, directories []uint64) (resigns bool) {
	w.mu.Lock()
	before := w.worn
	if !w.tooMany {
		w.names.looked(directories)
		w.worn = w.worn || h.Everything && w.names.tooMany()
	}
	wears := w.worn && !before
	resigns = h.Everything && (w.tooMany || w.worn)
	if resigns {
		w.missing = len(directories)
	}
	w.mu.Unlock()
	if wears {
		w.unwatch()
	}
	return resigns
}

// settle removes from bare what has its watch after all, and returns the paths of
// that; and what is gone.
func (w *Watch) settle(bare map[string]Inode) (late []string) {
	for _, pause := range patience() {
		if len(bare) == 0 {
			return late
		}
		time.Sleep(pause)
		now := w.held()
		there := 0
		for path, inode := range bare {
			switch {
			case now.has(inode):
				late = append(late, path)
				delete(bare, path)
			case there >= confirmed:
			case w.isThere(path, inode):
				there++
			default:
				delete(bare, path)
			}
		}
	}
	return late
}

func (w *Watch) isThere(path string, was Inode) bool {
	now, err := inodeOf(filepath.Join(w.path, path))
	return err == nil && now == was
}
