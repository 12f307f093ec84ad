package watch

import (
	"hash/maphash"
	"time"
)

// mostNames is how many directories of a tree notify may know by a path, those that are
// there and those that were moved away from it: it forgets a directory only when it learns
// of its removal, and keeps some 700 bytes for each until then.
const mostNames = 4 * mostDirectories

const (
	// fleeting is within what time a directory is made and removed for notify to get that
	// in the wrong order, some times, and to keep the name: 130 bytes on the average.
	fleeting = 20 * time.Millisecond
	// fleetingShare is how many of those names count as one.
	fleetingShare = 8
	// mostMade is of how many directories the time is kept in which they were made.
	mostMade = 4096
)

// names are the paths, by their hashes, by which notify most likely knows directories of
// one tree.
type names struct {
	seed  maphash.Seed
	most  int
	known map[uint64]struct{}
	// removed are those that were removed while the owner looks: it may have seen them
	// before. In that case a full set says nothing, and neither does the look.
	removed map[uint64]struct{}
	made    map[uint64]time.Time
}

func newNames(most int) *names {
	return &names{
		seed: maphash.MakeSeed(), most: most,
		known: map[uint64]struct{}{}, removed: map[uint64]struct{}{}, made: map[uint64]time.Time{},
	}
}

func (n *names) hash(path string) uint64 { return maphash.String(n.seed, path) }

// learn adds a name. One more than there may be is enough to know that.
func (n *names) learn(hash uint64) {
	if len(n.known) <= n.most {
		n.known[hash] = struct{}{}
	}
}

// make notes that a directory was made.
func (n *names) make(hash uint64, now time.Time) {
	if len(n.made) >= mostMade {
		clear(n.made)
	}
	n.made[hash] = now
}

// forget notes that one was removed.
func (n *names) forget(hash uint64, now time.Time) {
	made, is := n.made[hash]
	if is && now.Sub(made) < fleeting && hash%fleetingShare == 0 {
		n.learn(hash)
		return
	}
	delete(n.known, hash)
	if len(n.removed) < n.most {
		n.removed[hash] = struct{}{}
	}
}

// looks says that the owner begins to look.
func (n *names) looks() { clear(n.removed) }

// looked adds what the owner saw.
func (n *names) looked(hashes []uint64) {
	if len(n.removed) == n.most {
		return
	}
	for _, hash := range hashes {
		if _, gone := n.removed[hash]; !gone {
			n.learn(hash)
		}
	}
}

// tooMany says that notify has more names than it may have.
func (n *names) tooMany() bool { return len(n.known) > n.most }
