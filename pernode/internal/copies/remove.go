package copies

import (
	"context"
	"fmt"

	"liken.sh/csicommon/handle"
)

// Remove moves a copy to the trash, under the volume's lock and only while no
// mount shows it. confirm is asked last whether the volume is still unwanted, and
// its error calls the removal off; a publish waits meanwhile, so it must answer
// from memory. The whole mount table is read again for it: a removal is rare and
// cannot be undone.
func (s *Store) Remove(ctx context.Context, volume string, confirm func() error) error {
	if err := handle.Check(volume); err != nil {
		return err
	}
	unlock, err := s.handles.Lock(ctx, volume)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.config.Mounts.Rescan(); err != nil {
		return fmt.Errorf("%w: %w", ErrUndecided, err)
	}
	mounts, err := s.mountsOf(volume)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return s.heldError(volume, mounts)
	}
	if err := confirm(); err != nil {
		return fmt.Errorf("the copy is kept: %w", err)
	}
	s.step("trash copy")
	if err := s.bin.Put(s.copies, volume); err != nil {
		return fmt.Errorf("move the copy of volume %q to the trash: %w", volume, err)
	}
	s.dropHold(volume)
	return nil
}
