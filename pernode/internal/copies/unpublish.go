package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/mount"
)

// Unpublish takes a volume off a target. Everything that is gone already is
// success: target, mount, hold, copy and PersistentVolume. A target that is not
// this driver's is left alone. The copy stays in any case.
func (s *Store) Unpublish(ctx context.Context, volume, target string) error {
	path, err := canonicalTarget(target)
	nowhere := leadsNowhere(err)
	if nowhere {
		path = filepath.Clean(target)
	} else if err != nil {
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
	if !nowhere {
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
func (s *Store) takeOff(volume, target string, holdsTarget bool) (bool, error) {
	ours, err := s.isOurs(target, holdsTarget)
	if err != nil {
		return false, err
	}
	if !ours {
		s.config.Log.Warn("a target to unpublish is not this driver's, leaving it", "volume", volume, "target", target)
		return false, nil
	}
	s.step("unbind")
	if err := s.config.Mounts.Unbind(target); err != nil {
		return false, fmt.Errorf("unpublish volume %q: %w", volume, err)
	}
	return true, nil
}

// leadsNowhere is true for a path that nothing can be mounted at, because what
// leads to it is gone or no directory.
func leadsNowhere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENAMETOOLONG)
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

// isOurs is true for a target the kubelet hands out, one that the hold names,
// and one that shows something of the store. Only such a target is unmounted or
// removed, whatever the request says.
func (s *Store) isOurs(target string, holdsTarget bool) (bool, error) {
	if holdsTarget || s.isKubeletTarget(target) {
		return true, nil
	}
	m, mounted, err := s.config.Mounts.At(target)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !mounted {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the target: %w", err)
	}
	return s.inStore(m)
}

func (s *Store) inStore(m mount.Mount) (bool, error) {
	copies, err := s.config.Mounts.Locate(s.copies)
	if err != nil {
		return false, fmt.Errorf("locate the store: %w", err)
	}
	return m.Major == copies.Major && m.Minor == copies.Minor && isBelow(m.Path, copies.Path), nil
}
