package copies

import (
	"context"
	"fmt"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/target"
)

// Unpublish takes a volume off a target. Everything that is gone already is
// success: target, mount, hold, copy and PersistentVolume. A target that is not
// this driver's is left alone. The copy stays in any case.
func (s *Store) Unpublish(ctx context.Context, volume, at string) error {
	path, isNowhere, err := target.Former(at)
	if err != nil {
		return err
	}
	unlock, err := s.lockBoth(ctx, volume, path)
	if err != nil {
		return err
	}
	defer unlock()
	hold, hasHold := Hold{}, false
	if handle.Check(volume) == nil {
		hold, hasHold = s.Hold(volume)
	}
	holdsTarget := hasHold && hold.Target == path
	if !isNowhere {
		if taken, err := s.takeOff(volume, path, holdsTarget); err != nil || !taken {
			return err
		}
	}
	if holdsTarget || s.isOrphan(volume) {
		s.dropHold(volume)
	}
	return nil
}

// takeOff unmounts and removes the target, false when it is not ours to touch.
func (s *Store) takeOff(volume, path string, holdsTarget bool) (bool, error) {
	taken, err := s.targets.TakeOff(path, holdsTarget)
	switch {
	case err != nil:
		return false, fmt.Errorf("unpublish volume %q: %w", volume, err)
	case !taken:
		s.config.Log.Warn("a target to unpublish is not this driver's, leaving it", "volume", volume, "target", path)
	}
	return taken, nil
}

// isOrphan is true for a hold of a copy that nothing shows, when it cannot be read
// or names a target that is gone: one that could not be written or removed in time.
func (s *Store) isOrphan(volume string) bool {
	if handle.Check(volume) != nil || !s.hasHold(volume) {
		return false
	}
	if hold, readable := s.Hold(volume); readable && !s.isGone(hold.Target) {
		return false
	}
	mounts, err := s.mountsOf(volume)
	return err == nil && len(mounts) == 0
}
