package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/mount"
)

// Unpublish takes a volume off a target. Everything that is gone already is
// success: target, mount, hold, copy and PersistentVolume. A target that is not
// this driver's is left alone. The copy stays in any case.
func (s *Store) Unpublish(ctx context.Context, volume, target string) error {
	path, err := canonicalTarget(target)
	if errors.Is(err, fs.ErrNotExist) {
		path = filepath.Clean(target) // its parent is gone, so it is too
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
		hold, hasHold = s.readHold(volume)
	}
	holdsTarget := hasHold && hold.Target == path
	ours, err := s.isOurs(path, holdsTarget)
	if err != nil {
		return err
	}
	if !ours {
		s.config.Log.Warn("a target to unpublish is not this driver's, leaving it", "volume", volume, "target", path)
		return nil
	}
	s.step("unbind")
	if err := s.config.Mounts.Unbind(path); err != nil {
		return fmt.Errorf("unpublish volume %q: %w", volume, err)
	}
	if holdsTarget {
		return s.dropHold(volume)
	}
	return nil
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
