package copies

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/target"
)

// ErrNotPublished is wrapped when a volume is not at the path asked about.
var ErrNotPublished = errors.New("not published there")

// Space is a file system's, not a copy's: bytes and inodes in all, and what of
// them an application can still take.
type Space struct{ Bytes, AvailableBytes, Inodes, AvailableInodes int64 }

// Space returns that of the store's file system.
func (s *Store) Space() (Space, error) { return spaceOf(s.dir.Dir()) }

// SpaceAt returns that of the file system the volume's copy is on, which may be
// a disk of its own. The error wraps ErrNoCopy or ErrNotPublished when the
// volume is not published there.
func (s *Store) SpaceAt(volume, at string) (Space, error) {
	dir, err := s.Open(volume)
	if err != nil {
		return Space{}, err
	}
	defer dir.Close()
	path, err := target.Canonical(at)
	// A path that cannot be a target is one more place where the volume is not:
	// csi-sanity asks about a relative one and wants NotFound.
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, target.ErrTarget) {
		return Space{}, err
	}
	mounts, err := s.mountsOf(volume)
	if err != nil {
		return Space{}, err
	}
	for _, m := range mounts {
		if m.Point == path {
			return spaceOf(dir)
		}
	}
	return Space{}, fmt.Errorf("volume %q at %q: %w", volume, at, ErrNotPublished)
}

func spaceOf(dir *os.File) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return Space{}, fmt.Errorf("ask the file system of %q for its space: %w", dir.Name(), err)
	}
	return Space{
		Bytes:           int64(st.Blocks) * st.Bsize,
		AvailableBytes:  int64(st.Bavail) * st.Bsize,
		Inodes:          int64(st.Files),
		AvailableInodes: int64(st.Ffree),
	}, nil
}
