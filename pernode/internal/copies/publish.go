package copies

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/target"
)

// ErrPublishedOtherwise is wrapped when the target shows the copy already, but
// read-only where writing is asked or the other way round.
var ErrPublishedOtherwise = errors.New("published with another read-only flag")

// Publication is one pod's wish for a volume.
type Publication struct {
	Volume  string
	Target  string // as the kubelet spells it
	Options mount.Options
	// Pod and PV of the hold; Target and ReadOnly are filled in.
	Hold Hold
}

// Publish shows the node's copy of a volume on a target, making the copy if this
// is its first publish here. Doing it again changes nothing. When ctx ends while
// another call has the volume, the error wraps keyedmutex.ErrBusy.
func (s *Store) Publish(ctx context.Context, p Publication) error {
	if err := handle.Check(p.Volume); err != nil {
		return err
	}
	path, err := target.Canonical(p.Target)
	if err != nil {
		return err
	}
	unlock, err := s.lockBoth(ctx, p.Volume, path)
	if err != nil {
		return err
	}
	defer unlock()
	p.Target, p.Hold.Target, p.Hold.ReadOnly = path, path, p.Options.ReadOnly
	return s.publish(ctx, p)
}

func (s *Store) publish(ctx context.Context, p Publication) error {
	// The kubelet repeats each publish: that is answered without a look at the
	// node's other mounts.
	if m, shown := s.config.Mounts.Shows(p.Target, s.copies, p.Volume); shown {
		return s.publishAgain(p, m)
	}
	mounts, err := s.mountsOf(p.Volume)
	if err != nil {
		return fmt.Errorf("find out who holds volume %q: %w", p.Volume, err)
	}
	for _, m := range mounts {
		if m.Point == p.Target {
			return s.publishTopmost(p, m)
		}
	}
	if len(mounts) > 0 {
		return s.heldError(p.Volume, mounts)
	}
	if err := s.targets.Check(p.Target); err != nil {
		return err
	}
	// A caller that left before anything was done gets nothing half done.
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.publishFirst(p)
}

// publishTopmost is for a target that shows the copy, unless something else was
// mounted over it since, or over what leads to it: then the pod would get that.
func (s *Store) publishTopmost(p Publication, m mount.Mount) error {
	top, mounted, err := s.config.Mounts.At(p.Target)
	switch {
	case err != nil:
		return fmt.Errorf("look at the target: %w", err)
	case !mounted:
		return fmt.Errorf("%w over a directory above %q and hides the volume there, unmount it first", target.ErrOccupied, p.Target)
	case top.ID != m.ID:
		return target.Occupied(p.Target, top)
	}
	return s.publishAgain(p, m)
}

// publishAgain answers a repeated publish. The mount is not touched: a reader in
// the pod must not notice that the kubelet asked twice.
func (s *Store) publishAgain(p Publication, m mount.Mount) error {
	if m.ReadOnly != p.Options.ReadOnly {
		return fmt.Errorf("volume %q is at %q read-only=%t already, read-only=%t was asked: %w",
			p.Volume, p.Target, m.ReadOnly, p.Options.ReadOnly, ErrPublishedOtherwise)
	}
	s.keepHold(p.Volume, p.Hold)
	return nil
}

func (s *Store) publishFirst(p Publication) error {
	source, err := s.ensure(p.Volume)
	if err != nil {
		return err
	}
	defer source.Close()
	// The hold comes first: a process killed after the mount must have left word
	// who it was for, while a hold without a mount is simply taken over.
	s.writeHold(p.Volume, p.Hold)
	if err := s.targets.Show(source, p.Target, p.Options); err != nil {
		s.dropHold(p.Volume)
		return fmt.Errorf("show the copy of volume %q: %w", p.Volume, err)
	}
	return nil
}

// lockBoth takes the volume's lock and then the target's, always in that order.
func (s *Store) lockBoth(ctx context.Context, volume, path string) (unlock func(), err error) {
	unlockVolume, err := s.handles.Lock(ctx, volume)
	if err != nil {
		return nil, err
	}
	unlockTarget, err := s.places.Lock(ctx, path)
	if err != nil {
		unlockVolume()
		return nil, err
	}
	return func() { unlockTarget(); unlockVolume() }, nil
}
