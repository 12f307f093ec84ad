package mount

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"
)

const (
	// listBatch is how many ids are listed at a time.
	listBatch = 512
	// growthSlack is how many mounts may be added to the index on top of doubling
	// before it is read anew, which drops those that are gone.
	growthSlack = 1024
)

// index is the table of Linux 6.8 and later. It knows every mount of the namespace
// by its unique id. As ids only grow, what is new since last time is what has a
// greater id, and only that is read.
//
// One thing breaks the rule: a clone (open_tree) has its id before it is attached,
// and whoever catches up in between would step over it for ever. So catching up
// starts no later than where it had come when the oldest bind now running began.
type index struct {
	mu    sync.Mutex
	known known
	// last is the greatest id that was read.
	last uint64
	// floors holds, for each running bind, the value of last when it began.
	floors map[*uint64]struct{}
	// missed counts the binds after which catching up failed, so that their mounts
	// may not be known, and repaired those that a complete read has made good since.
	missed, repaired int
	// scanned and added bound the index to a multiple of the mounts there are.
	scanned, added int
}

// known is the mounts by id and their ids by where their root was seen to lie.
// That the mounts still are there, and as they were, is asked when they are
// looked up. A directory that is renamed keeps its former places: it may be
// renamed back before anybody asks.
type known struct {
	places map[uint64][]Location
	ids    map[Location]map[uint64]struct{}
}

func newKnown() known {
	return known{places: make(map[uint64][]Location), ids: make(map[Location]map[uint64]struct{})}
}

func (k known) add(id uint64, loc Location) {
	if slices.Contains(k.places[id], loc) {
		return
	}
	k.places[id] = append(k.places[id], loc)
	if k.ids[loc] == nil {
		k.ids[loc] = make(map[uint64]struct{}, 1)
	}
	k.ids[loc][id] = struct{}{}
}

func (k known) drop(id uint64) {
	for _, loc := range k.places[id] {
		delete(k.ids[loc], id)
		if len(k.ids[loc]) == 0 {
			delete(k.ids, loc)
		}
	}
	delete(k.places, id)
}

// newIndex reads the whole table once. It fails where the kernel lacks the calls,
// or a filter takes them away.
func newIndex() (*index, error) {
	x := &index{known: newKnown(), floors: make(map[*uint64]struct{})}
	st, err := statxAt(unix.AT_FDCWD, "/", unix.STATX_MNT_ID_UNIQUE)
	if err != nil {
		return nil, err
	}
	if st.Mask&unix.STATX_MNT_ID_UNIQUE == 0 || st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return nil, errUnknown
	}
	if _, found, err := statmount(st.Mnt_id); err != nil || !found {
		return nil, errors.Join(errUnknown, err)
	}
	if err := x.rescan(); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *index) at(point string) (Mount, bool, error) {
	st, err := statxAt(unix.AT_FDCWD, point, unix.STATX_MNT_ID_UNIQUE)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return Mount{}, false, nil
	case mountutils.IsCorruptedMnt(err):
		return mountinfoTable{}.at(point)
	case err != nil:
		return Mount{}, false, fmt.Errorf("look at it: %w", err)
	case st.Attributes&unix.STATX_ATTR_MOUNT_ROOT == 0:
		return Mount{}, false, nil
	}
	m, found, err := statmount(st.Mnt_id)
	if err == nil && !found {
		// Unmounted between the two calls; there may be another one below it.
		return x.at(point)
	}
	return m, found, err
}

func (x *index) holding(dir *os.File) (Mount, error) {
	st, err := statxHandle(dir, unix.STATX_MNT_ID_UNIQUE)
	if err != nil {
		return Mount{}, fmt.Errorf("look at it: %w", err)
	}
	m, found, err := statmount(st.Mnt_id)
	if err == nil && !found {
		err = errors.New("its mount is not in the mount table")
	}
	return m, err
}

func (x *index) showing(loc Location) ([]Mount, error) {
	if x.needsRescan() {
		if err := x.rescan(); err != nil {
			return nil, err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.catchUp(); err != nil {
		return nil, err
	}
	return x.verified(loc)
}

// verified asks for each mount known at loc whether it still is; what is gone is
// dropped, and what was renamed is put where it belongs too.
func (x *index) verified(loc Location) ([]Mount, error) {
	var mounts []Mount
	var renamed []Mount
	for id := range x.known.ids[loc] {
		m, found, err := statmount(id)
		switch {
		case err != nil:
			return nil, err
		case !found:
			x.known.drop(id)
		case m.Location != loc:
			renamed = append(renamed, m)
		default:
			mounts = append(mounts, m)
		}
	}
	for _, m := range renamed {
		x.known.add(m.ID, m.Location)
	}
	return mounts, nil
}

func (x *index) needsRescan() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.missed > x.repaired || x.added > x.scanned+growthSlack
}

// attaching keeps catching up from stepping over the mount that is about to be
// made, and attached reads it.
func (x *index) attaching() (attached func()) {
	floor := new(uint64)
	x.mu.Lock()
	defer x.mu.Unlock()
	*floor = x.last
	x.floors[floor] = struct{}{}
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		if err := x.catchUp(); err != nil {
			x.missed++
		}
		delete(x.floors, floor)
	}
}

// floor is the id beyond which a mount may not be known.
func (x *index) floor() uint64 {
	floor := x.last
	for f := range x.floors {
		floor = min(floor, *f)
	}
	return floor
}

// catchUp reads the mounts that are new.
func (x *index) catchUp() error {
	last, err := eachMount(x.floor(), func(id uint64) error {
		if _, ok := x.known.places[id]; ok {
			return nil
		}
		m, found, err := statmount(id)
		if found {
			x.known.add(id, m.Location)
			x.added++
		}
		return err
	})
	if err != nil {
		return err
	}
	x.last = max(x.last, last)
	return nil
}

// rescan builds a new index without holding up those who use the present one.
func (x *index) rescan() error {
	begun := x.beginScan()
	fresh := newKnown()
	last, err := eachMount(0, func(id uint64) error {
		m, found, err := statmount(id)
		if found {
			fresh.add(id, m.Location)
		}
		return err
	})
	if err != nil {
		return err
	}
	x.takeOver(begun, fresh, last)
	return nil
}

// scanBegun is what a complete read makes good: it finds every mount up to floor,
// and those of the binds that were missed until then.
type scanBegun struct {
	floor  uint64
	missed int
}

func (x *index) beginScan() scanBegun {
	x.mu.Lock()
	defer x.mu.Unlock()
	return scanBegun{floor: x.floor(), missed: x.missed}
}

// takeOver replaces what was known by what was read, and keeps of the former what
// may have been attached while it was read, and the former places of what is there.
func (x *index) takeOver(begun scanBegun, fresh known, last uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id, places := range x.known.places {
		if _, there := fresh.places[id]; there || id > begun.floor {
			for _, loc := range places {
				fresh.add(id, loc)
			}
		}
	}
	x.known, x.last = fresh, max(x.last, last)
	x.scanned, x.added = len(fresh.places), 0
	x.repaired = max(x.repaired, begun.missed)
}

// eachMount calls visit with the id of each mount greater than after, smallest
// first, and returns the greatest.
func eachMount(after uint64, visit func(id uint64) error) (uint64, error) {
	ids := make([]uint64, listBatch)
	for {
		n, err := listmount(after, ids)
		if err != nil {
			return 0, err
		}
		for _, id := range ids[:n] {
			if err := visit(id); err != nil {
				return 0, err
			}
			after = id
		}
		if n < len(ids) {
			return after, nil
		}
	}
}
