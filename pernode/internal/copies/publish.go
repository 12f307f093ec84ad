package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/mount"
)

// targetMode is the kubelet's own for the directories around a target. Once the
// copy is mounted, the copy's mode is what a pod sees.
const targetMode = 0o750

// ErrPublishedOtherwise is wrapped when the target shows the copy already, but
// read-only where writing is asked or the other way round.
var ErrPublishedOtherwise = errors.New("published with another read-only flag")

// ErrOccupied is wrapped when the target is a mount that does not show the copy:
// another volume's, or what is left of a file system that died.
var ErrOccupied = errors.New("something else is mounted")

// ErrTarget is wrapped when a target path cannot be one.
var ErrTarget = errors.New("not a target path")

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
	target, err := canonicalTarget(p.Target)
	if err != nil {
		return err
	}
	if isBelow(target, s.config.Dir) {
		return fmt.Errorf("%q is inside the store: %w", p.Target, ErrTarget)
	}
	unlock, err := s.lockBoth(ctx, p.Volume, target)
	if err != nil {
		return err
	}
	defer unlock()
	p.Target, p.Hold.Target, p.Hold.ReadOnly = target, target, p.Options.ReadOnly
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
	if err := s.checkTarget(p.Target); err != nil {
		return err
	}
	// A caller that left before anything was done gets nothing half done.
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.publishFirst(p)
}

// publishTopmost is for a target that shows the copy, unless something else was
// mounted over it since: then the pod would get that.
func (s *Store) publishTopmost(p Publication, m mount.Mount) error {
	top, mounted, err := s.config.Mounts.At(p.Target)
	if err != nil {
		return fmt.Errorf("look at the target: %w", err)
	}
	if mounted && top.ID != m.ID {
		return occupied(p.Target, top)
	}
	return s.publishAgain(p, m)
}

func occupied(target string, m mount.Mount) error {
	return fmt.Errorf("%w at %q (%q of device %d:%d), unmount it first", ErrOccupied, target, m.Path, m.Major, m.Minor)
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

// checkTarget refuses a target where the mount would hide something, or would
// not reach the kubelet.
func (s *Store) checkTarget(target string) error {
	m, mounted, err := s.config.Mounts.At(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at the target: %w", err)
	}
	if mounted {
		return occupied(target, m)
	}
	return s.requireShared(target)
}

// requireShared judges the mount that the target lies on, and advises on the
// kubelet directory, since that is the one to be mounted otherwise.
func (s *Store) requireShared(target string) error {
	err := s.config.Mounts.RequireShared(filepath.Dir(target))
	if err == nil || !isBelow(target, s.config.KubeletDir) {
		return err
	}
	if advice := s.config.Mounts.RequireShared(s.config.KubeletDir); advice != nil {
		return advice
	}
	return err
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
	if err := s.show(source, p); err != nil {
		s.dropHold(p.Volume)
		return err
	}
	return nil
}

func (s *Store) show(source *os.File, p Publication) error {
	s.step("make target")
	made := true
	if err := os.Mkdir(p.Target, targetMode); errors.Is(err, fs.ErrExist) {
		made = false
	} else if err != nil {
		return fmt.Errorf("make the target: %w", err)
	}
	s.step("bind")
	err := s.config.Mounts.Bind(source, p.Target, p.Options)
	if err != nil && made {
		if rmErr := unix.Rmdir(p.Target); rmErr != nil {
			s.config.Log.Warn("the target of a failed bind stays", "target", p.Target, "error", rmErr)
		}
	}
	if err != nil {
		return fmt.Errorf("bind the copy of volume %q: %w", p.Volume, err)
	}
	return nil
}

// lockBoth takes the volume's lock and then the target's, always in that order.
func (s *Store) lockBoth(ctx context.Context, volume, target string) (unlock func(), err error) {
	unlockVolume, err := s.handles.Lock(ctx, volume)
	if err != nil {
		return nil, err
	}
	unlockTarget, err := s.targets.Lock(ctx, target)
	if err != nil {
		unlockVolume()
		return nil, err
	}
	return func() { unlockTarget(); unlockVolume() }, nil
}

// canonicalTarget is the one spelling of a target under which it is locked, held
// and compared with the mount table.
func canonicalTarget(target string) (string, error) {
	switch {
	case !filepath.IsAbs(target):
		return "", fmt.Errorf("%q is not absolute: %w", target, ErrTarget)
	case len(target) >= unix.PathMax:
		return "", fmt.Errorf("it has %d bytes, the kernel takes less than %d: %w", len(target), unix.PathMax, ErrTarget)
	}
	return mount.Canonical(target)
}
