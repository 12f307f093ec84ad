package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/csicommon/persistentvolume"
)

// errWantedAgain calls a removal off.
var errWantedAgain = errors.New("the volume is wanted again")

// unreadGrace is how long a first answer about a PersistentVolume may take.
const unreadGrace = time.Minute

// names are the PersistentVolumes that one volume is known or guessed by.
type names struct {
	pvs   map[string]time.Time // and since when each is watched, zero for not yet
	wish  uint64               // number of its latest publish, 0 for none since the start
	retry time.Time            // when a removal that failed is tried again
}

// named returns the volume's names, made if there are none. The caller holds mu.
func (s *Sweeper) named(volume string) *names {
	n := s.names[volume]
	if n == nil {
		n = &names{pvs: make(map[string]time.Time)}
		s.names[volume] = n
	}
	return n
}

// watch adds a name, if it is new, and has it watched. The caller holds mu.
func (s *Sweeper) watch(n *names, pv string) {
	if n.pvs[pv].IsZero() {
		n.pvs[pv] = time.Now()
	}
	s.config.Cluster.Follow(pv)
}

// Wanted says that a pod is about to be given the volume through the
// PersistentVolume pv (empty when unknown). It must be said before the publish:
// a removal that is on its way has to see it.
func (s *Sweeper) Wanted(volume, pv string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wished++
	n := s.named(volume)
	n.wish, n.retry = s.wished, time.Time{}
	if _, known := n.pvs[pv]; pv != "" && !known {
		n.pvs[pv] = time.Time{}
	}
}

// Published says that a pod was given the volume, so that its PersistentVolumes
// are watched from now on. What was only asked for and refused is not watched.
func (s *Sweeper) Published(volume string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.named(volume)
	for pv := range n.pvs {
		s.watch(n, pv)
	}
}

func (s *Sweeper) wishes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wished
}

// follow sees to it that the PersistentVolumes of these volumes are watched, and no
// others. A volume that nothing is known of is guessed to have one of the name that
// its hold tells, or of its handle, as is the custom; where that is wrong, the
// confirming read finds the right one.
func (s *Sweeper) follow(volumes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := make(map[string]bool, len(volumes))
	for _, volume := range volumes {
		present[volume] = true
		n := s.named(volume)
		if len(n.pvs) == 0 {
			n.pvs[s.guess(volume)] = time.Time{}
		}
		for pv := range n.pvs {
			s.watch(n, pv)
		}
	}
	for volume := range s.names {
		if !present[volume] {
			s.drop(volume)
		}
	}
}

func (s *Sweeper) guess(volume string) string {
	if hold, readable := s.config.Store.Hold(volume); readable && hold.PV != "" {
		return hold.PV
	}
	return volume
}

// looksUnnamed is true when every PersistentVolume the volume is known by was
// read, none of them names it now, and it is not too early to try again. One
// that still could not be read after the grace is an error: a node that may not
// read PersistentVolumes must not look like one with nothing to remove.
func (s *Sweeper) looksUnnamed(volume string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.names[volume]
	if n == nil || time.Now().Before(n.retry) {
		return false, nil
	}
	for pv, watched := range n.pvs {
		found, state := s.config.Cluster.Get(pv)
		switch {
		case state == persistentvolume.Unknown && !watched.IsZero() && time.Since(watched) > unreadGrace:
			return false, fmt.Errorf("the PersistentVolume of volume %q could not be read yet", volume)
		case state == persistentvolume.Unknown, state == persistentvolume.Present && s.isNamedBy(volume, found):
			return false, nil
		}
	}
	return true, nil
}

// learn takes the PersistentVolumes of a complete read as the names of the
// copies they name, in place of guesses that proved wrong, and returns which
// handles are named.
func (s *Sweeper) learn(volumes []persistentvolume.Volume) (named map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	named = make(map[string]bool, len(volumes))
	listed := make(map[string]bool, len(volumes))
	for _, found := range volumes {
		named[found.Handle], listed[found.Name] = true, true
		if n := s.names[found.Handle]; n != nil {
			s.watch(n, found.Name)
		}
	}
	for volume := range named {
		n := s.names[volume]
		if n == nil {
			continue
		}
		for pv := range n.pvs {
			// A watch may lag behind the list, which just showed that it exists.
			if _, state := s.config.Cluster.Get(pv); state == persistentvolume.Absent && !listed[pv] {
				s.dropName(n, pv)
			}
		}
	}
	return named
}

// stillUnnamed reads the volume's names live once more: a PersistentVolume made
// again after the pages of the confirming read is caught here.
func (s *Sweeper) stillUnnamed(ctx context.Context, volume string) error {
	for _, pv := range s.candidatesFor(volume) {
		found, exists, err := s.config.Cluster.Read(ctx, pv)
		if err != nil {
			return err
		}
		if exists && s.isNamedBy(volume, found) {
			return fmt.Errorf("%w: PersistentVolume %q names it", errWantedAgain, pv)
		}
	}
	return nil
}

func (s *Sweeper) candidatesFor(volume string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	pvs := []string{volume}
	for pv := range s.named(volume).pvs {
		if pv != volume {
			pvs = append(pvs, pv)
		}
	}
	return pvs
}

// notWanted is asked under the volume's lock, right before its copy goes, and
// answers from memory.
func (s *Sweeper) notWanted(volume string, before uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.named(volume)
	if n.wish > before {
		return fmt.Errorf("%w: a pod asked for it meanwhile", errWantedAgain)
	}
	for pv := range n.pvs {
		if found, state := s.config.Cluster.Get(pv); state == persistentvolume.Present && s.isNamedBy(volume, found) {
			return fmt.Errorf("%w: PersistentVolume %q names it", errWantedAgain, pv)
		}
	}
	return nil
}

func (s *Sweeper) isNamedBy(volume string, found persistentvolume.Volume) bool {
	return found.Driver == s.config.Driver && found.Handle == volume
}

// postpone keeps a copy that cannot be removed from costing a complete read of
// the cluster with each thing that happens to another volume.
func (s *Sweeper) postpone(volume string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named(volume).retry = time.Now().Add(s.config.Every * 9 / 10)
}

// forget drops a volume whose copy is gone, false when a pod asked for it since.
func (s *Sweeper) forget(volume string, before uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named(volume).wish > before {
		return false
	}
	s.drop(volume)
	return true
}

// drop stops watching what only this volume is known by. The caller holds mu.
func (s *Sweeper) drop(volume string) {
	n := s.names[volume]
	if n == nil {
		return
	}
	delete(s.names, volume)
	for pv := range n.pvs {
		s.dropName(n, pv)
	}
}

// dropName is drop for one of the names. The caller holds mu.
func (s *Sweeper) dropName(n *names, pv string) {
	delete(n.pvs, pv)
	for _, other := range s.names {
		if _, used := other.pvs[pv]; used {
			return
		}
	}
	s.config.Cluster.Unfollow(pv)
}
