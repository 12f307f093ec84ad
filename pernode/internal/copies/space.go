package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"liken.sh/csicommon/target"
	"liken.sh/csicommon/usage"
)

// ErrNotPublished is wrapped when a volume is not at the path asked about.
var ErrNotPublished = errors.New("not published there")

// Space returns that of the store's file system.
func (s *Store) Space() (usage.Space, error) { return usage.SpaceOf(s.dir.Dir()) }

// SpaceAt returns that of the file system the volume's copy is on, which may be
// a disk of its own. The error wraps ErrNoCopy or ErrNotPublished when the
// volume is not published there, and ctx's own when that ends before the disk has
// answered.
func (s *Store) SpaceAt(ctx context.Context, volume, at string) (usage.Space, error) {
	return s.questions.Space(ctx, volume, func() (usage.Space, error) { return s.spaceAt(volume, at) })
}

func (s *Store) spaceAt(volume, at string) (usage.Space, error) {
	dir, err := s.Open(volume)
	if err != nil {
		return usage.Space{}, err
	}
	defer dir.Close()
	path, err := target.Canonical(at)
	// A path that cannot be a target is one more place where the volume is not:
	// csi-sanity asks about a relative one and wants NotFound.
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, target.ErrTarget) {
		return usage.Space{}, err
	}
	mounts, err := s.mountsOf(volume)
	if err != nil {
		return usage.Space{}, err
	}
	for _, m := range mounts {
		if m.Point == path {
			return usage.SpaceOf(dir)
		}
	}
	return usage.Space{}, fmt.Errorf("volume %q at %q: %w", volume, at, ErrNotPublished)
}
