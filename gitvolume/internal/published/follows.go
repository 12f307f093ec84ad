package published

import "sync"

// followedByReclaim is who follows the PersistentVolumes of trees that nobody has. Others
// are volumes, by their handles, and no handle is empty.
const followedByReclaim = ""

// follows are the PersistentVolumes that are watched, and for whom: several may want one.
type follows struct {
	cluster Cluster

	mu  sync.Mutex
	all map[string]map[string]bool // By PersistentVolume, for whom.
}

// add has a PersistentVolume be watched for somebody, who is told what is known of it, be
// it that others have it watched already.
func (f *follows) add(pv, whom string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.all[pv] == nil:
		f.all[pv] = map[string]bool{}
		f.cluster.Follow(pv)
	case !f.all[pv][whom]:
		f.cluster.Tell(pv)
	}
	f.all[pv][whom] = true
}

// drop ends what add began.
func (f *follows) drop(pv, whom string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dropLocked(pv, whom)
}

func (f *follows) dropLocked(pv, whom string) {
	if !f.all[pv][whom] {
		return
	}
	delete(f.all[pv], whom)
	if len(f.all[pv]) == 0 {
		delete(f.all, pv)
		f.cluster.Unfollow(pv)
	}
}

// keep drops all for somebody but these.
func (f *follows) keep(whom string, these map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for pv := range f.all {
		if !these[pv] {
			f.dropLocked(pv, whom)
		}
	}
}
