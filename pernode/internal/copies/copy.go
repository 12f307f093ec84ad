package copies

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/errortext"
	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/storedir"
)

// copyMode lets any user of any pod write, whatever umask the plugin has.
const copyMode = 0o777

// unfinished starts the names of what is being made. No handle starts with a
// dot, so none of them is ever taken for a copy or a hold.
const unfinished = ".new-"

// ErrNotADirectory is wrapped when a link or a file is where a copy should be.
var ErrNotADirectory = storedir.ErrNotADirectory

// ErrNoCopy is wrapped when the node has no copy of the volume.
var ErrNoCopy = errors.New("this node has no copy of it")

// Open returns the copy's directory, opened for reading without following a
// link. The caller closes it.
func (s *Store) Open(volume string) (*os.File, error) {
	if err := handle.Check(volume); err != nil {
		return nil, err
	}
	dir, err := storedir.OpenDir(s.copies, volume)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("open the copy of volume %q: %w: %w", volume, ErrNoCopy, err)
	case err != nil:
		return nil, fmt.Errorf("open the copy of volume %q: %w", volume, err)
	}
	return dir, nil
}

// List returns the handles of all copies on this node.
func (s *Store) List() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.config.Dir, copiesDir))
	if err != nil {
		return nil, fmt.Errorf("list the copies: %w", err)
	}
	volumes := make([]string, 0, len(entries))
	for _, entry := range entries {
		// A link or a file here is nobody's copy; publishing it is refused.
		if entry.IsDir() && handle.Check(entry.Name()) == nil {
			volumes = append(volumes, entry.Name())
		}
	}
	return volumes, nil
}

// ensure opens the copy, making it if there is none.
func (s *Store) ensure(volume string) (*os.File, error) {
	dir, err := s.Open(volume)
	if !errors.Is(err, ErrNoCopy) {
		return dir, err
	}
	// A disk mounted over the store since would hide the new copy at the next start.
	for _, opened := range []*os.File{s.dir.Dir(), s.copies} {
		if err := storedir.StillAt(opened); err != nil {
			return nil, fmt.Errorf("make the copy of volume %q: %w: %w", volume, ErrStore, err)
		}
	}
	if err := s.make(volume); err != nil {
		return nil, fmt.Errorf("make the copy of volume %q: %w", volume, errortext.WithoutPath(err))
	}
	s.config.Log.Info("made a copy", "volume", volume)
	return s.Open(volume)
}

// make makes the copy under another name and renames it when its mode is right:
// a process killed in between leaves no copy that only root can write.
func (s *Store) make(volume string) error {
	name := unfinished + rand.Text()
	s.step("make copy")
	if err := unix.Mkdirat(int(s.copies.Fd()), name, storedir.Mode); err != nil {
		return err
	}
	if err := s.finish(name, volume); err != nil {
		return errors.Join(err, unix.Unlinkat(int(s.copies.Fd()), name, unix.AT_REMOVEDIR))
	}
	s.step("sync copies")
	// The only fsync of a publish: after a power cut a database must find the
	// directory it was given.
	return s.copies.Sync()
}

func (s *Store) finish(name, volume string) error {
	s.step("chmod copy")
	if err := s.openToAll(name); err != nil {
		return err
	}
	s.step("name copy")
	err := unix.Renameat2(int(s.copies.Fd()), name, int(s.copies.Fd()), volume, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) {
		// The file system does not know the flag. The volume's lock is held, and a
		// directory replaces nothing but an empty one.
		err = unix.Renameat(int(s.copies.Fd()), name, int(s.copies.Fd()), volume)
	}
	return err
}

// openToAll gives a new copy its mode. By a default ACL of the directories above it, the
// group that owns it would have other rights than the mode says: with an access ACL the
// mode's middle bits are a mask.
func (s *Store) openToAll(name string) error {
	dir, err := storedir.OpenDir(s.copies, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = unix.Fremovexattr(int(dir.Fd()), "system.posix_acl_access")
	if err != nil && !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	return unix.Fchmod(int(dir.Fd()), copyMode)
}

// locations are where the copy lies in its file system, whether or not it exists: a
// mount can outlive the directory it shows. Of a copy that is a disk of its own, the
// directory that the disk is mounted over comes second: a pod may have that since before.
func (s *Store) locations(volume string) ([]mount.Location, error) {
	below, err := s.config.Mounts.Locate(s.copies)
	if err != nil {
		return nil, err
	}
	below.Path = filepath.Join(below.Path, volume)
	dir, err := storedir.OpenDir(s.copies, volume)
	if errors.Is(err, fs.ErrNotExist) {
		return []mount.Location{below}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the copy of volume %q: %w", volume, err)
	}
	defer dir.Close()
	location, err := s.config.Mounts.Locate(dir)
	if err != nil || location == below {
		return []mount.Location{location}, err
	}
	return []mount.Location{location, below}, nil
}
