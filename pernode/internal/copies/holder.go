package copies

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/target"
)

// ErrHeld is what every *HeldError is.
var ErrHeld = errors.New("held by another pod")

// ErrUndecided is wrapped when it cannot be known whether a copy is held. The
// safe answer is to refuse.
var ErrUndecided = errors.New("the mount table cannot be read")

// HeldError says who has a copy. Its text is stable: it goes into Events.
type HeldError struct {
	Volume string
	Hold   Hold // zero when the holder is only known by its mount
	Target string
}

func (e *HeldError) Error() string {
	holder := e.Hold.Pod()
	if holder == "" {
		holder = "an unknown pod"
	} else {
		holder = "pod " + holder
	}
	return fmt.Sprintf("volume %q is held on this node by %s, mounted at %q; a volume of this driver serves one pod a node", e.Volume, holder, e.Target)
}

// Is makes every HeldError an ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Holder returns the hold of the pod that has the copy now; held is false when
// no mount of this node shows it.
func (s *Store) Holder(volume string) (hold Hold, held bool, err error) {
	mounts, err := s.mountsOf(volume)
	if err != nil || len(mounts) == 0 {
		return Hold{}, false, err
	}
	return s.heldError(volume, mounts).Hold, true, nil
}

// mountsOf returns the mounts that show the copy, outside the store itself: a
// disk of its own that an administrator mounted as the copy shows it too, and
// holds nothing.
func (s *Store) mountsOf(volume string) ([]mount.Mount, error) {
	if err := handle.Check(volume); err != nil {
		return nil, err
	}
	locations, err := s.locations(volume)
	if errors.Is(err, ErrNotADirectory) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUndecided, err)
	}
	var outside []mount.Mount
	for _, location := range locations {
		mounts, err := s.config.Mounts.Showing(location)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUndecided, err)
		}
		for _, m := range mounts {
			if !target.IsBelow(m.Point, s.config.Dir) {
				outside = append(outside, m)
			}
		}
	}
	if len(outside) == 0 {
		return s.mountOfHold(volume), nil
	}
	// In one order: which of them a refusal names is part of its Event.
	slices.SortFunc(outside, func(a, b mount.Mount) int { return strings.Compare(a.Point, b.Point) })
	return outside, nil
}

// mountOfHold is the mount that the volume's hold names, if that shows the copy.
// The mount table does not find one that it first saw while the copy was moved
// aside: a plugin that was started then would give the copy, once it is put back,
// to a second pod.
func (s *Store) mountOfHold(volume string) []mount.Mount {
	hold, readable := s.Hold(volume)
	if !readable {
		return nil
	}
	m, shown := s.config.Mounts.Shows(hold.Target, s.copies, volume)
	if !shown {
		return nil
	}
	return []mount.Mount{m}
}

// heldError names the holder: by its hold if that tells the truth about one of
// the mounts, else by the mount alone.
func (s *Store) heldError(volume string, mounts []mount.Mount) *HeldError {
	if hold, readable := s.Hold(volume); readable {
		for _, m := range mounts {
			if m.Point == hold.Target {
				return &HeldError{Volume: volume, Hold: hold, Target: hold.Target}
			}
		}
	}
	return &HeldError{Volume: volume, Target: mounts[0].Point}
}
