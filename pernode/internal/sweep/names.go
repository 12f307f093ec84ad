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

// names are the PersistentVolumes that one volume is known or guessed by.
type names struct {
	pvs   map[string]bool
	since time.Time // when the latest of them was first asked for
	wish  uint64    // number of its latest publish, 0 for none since the start
}

// unreadGrace is how long a first answer about a PersistentVolume may take.
const unreadGrace = time.Minute

// Published says that a pod was given, or is about to be given, the volume
// through the PersistentVolume pv (empty when unknown).
func (s *Sweeper) Published(volume, pv string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wished++
	n := s.names[volume]
	n.wish = s.wished
	if pv != "" && !n.pvs[pv] {
		if n.pvs == nil {
			n.pvs = make(map[string]bool)
		}
		n.pvs[pv], n.since = true, time.Now()
		s.config.Cluster.Follow(pv)
	}
	s.names[volume] = n
}

func (s *Sweeper) wishes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wished
}

// follow sees to it that each copy's PersistentVolumes are watched, and no
// others. A copy that nothing is known of is guessed to have one of the name of
// its handle, as is the custom; where that is wrong, the confirming read finds
// the right one.
func (s *Sweeper) follow(all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := make(map[string]bool, len(all))
	for _, volume := range all {
		present[volume] = true
		n := s.names[volume]
		if len(n.pvs) == 0 {
			n.pvs, n.since = map[string]bool{s.guess(volume): true}, time.Now()
			s.names[volume] = n
		}
		for pv := range n.pvs {
			s.config.Cluster.Follow(pv)
		}
	}
	for volume := range s.names {
		if !present[volume] {
			s.drop(volume)
		}
	}
}

func (s *Sweeper) guess(volume string) string {
	if hold, held, err := s.config.Store.Holder(volume); err == nil && held && hold.PV != "" {
		return hold.PV
	}
	return volume
}

// looksUnnamed is true when every PersistentVolume the volume is known by was
// read, and none of them names it now. One that still could not be read after
// the grace is an error: a node that may not read PersistentVolumes must not look
// like one with nothing to remove.
func (s *Sweeper) looksUnnamed(volume string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.names[volume]
	for pv := range n.pvs {
		found, state := s.config.Cluster.Get(pv)
		switch {
		case state == persistentvolume.Unknown && time.Since(n.since) > unreadGrace:
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
	for _, found := range volumes {
		named[found.Handle] = true
		if n, known := s.names[found.Handle]; known && !n.pvs[found.Name] {
			n.pvs[found.Name], n.since = true, time.Now()
			s.names[found.Handle] = n
			s.config.Cluster.Follow(found.Name)
		}
	}
	for volume := range named {
		for pv := range s.names[volume].pvs {
			if _, state := s.config.Cluster.Get(pv); state == persistentvolume.Absent {
				s.dropName(volume, pv)
			}
		}
	}
	return named
}

// stillUnnamed is asked under the volume's lock, right before its copy goes. The
// names are read live once more: a PersistentVolume made again after the pages
// of the confirming read is caught here.
func (s *Sweeper) stillUnnamed(ctx context.Context, volume string, before uint64) error {
	s.mu.Lock()
	n := s.names[volume]
	pvs := []string{volume}
	for pv := range n.pvs {
		if pv != volume {
			pvs = append(pvs, pv)
		}
	}
	s.mu.Unlock()
	if n.wish > before {
		return fmt.Errorf("%w: a pod asked for it meanwhile", errWantedAgain)
	}
	for _, pv := range pvs {
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

func (s *Sweeper) isNamedBy(volume string, found persistentvolume.Volume) bool {
	return found.Driver == s.config.Driver && found.Handle == volume
}

func (s *Sweeper) forget(volume string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(volume)
}

// drop stops watching what only this volume is known by. The caller holds mu.
func (s *Sweeper) drop(volume string) {
	for pv := range s.names[volume].pvs {
		s.dropName(volume, pv)
	}
	delete(s.names, volume)
}

// dropName is drop for one of the names. The caller holds mu.
func (s *Sweeper) dropName(volume, pv string) {
	delete(s.names[volume].pvs, pv)
	for _, n := range s.names {
		if n.pvs[pv] {
			return
		}
	}
	s.config.Cluster.Unfollow(pv)
}
