package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
	"liken.sh/gitvolume/internal/worktree"
)

var (
	// ErrNoTree says that the store has no tree of the volume.
	ErrNoTree = errors.New("the store has no tree of the volume")
	// ErrOtherTree says that a tree is not the directory that its volume's record names.
	// It must not be committed: what is missing in it was not deleted by the application.
	ErrOtherTree = errors.New("the tree is not the directory that the volume's record names")
)

// Identity tells a directory from any other that is or ever was at its path, over
// restarts and reboots. The device is no part of it, for it has another number after a
// reboot.
type Identity struct {
	// Inode is 0 on an overlay, which may give a directory another number when it is
	// mounted again.
	Inode uint64 `json:"inode,omitempty"`
	// Born is when the directory was made, in nanoseconds since 1970; 0 where the file
	// system does not record it.
	Born int64 `json:"born,omitempty"`
}

// TreeDir is the path of a volume's tree, whether or not it exists.
func (s *Store) TreeDir(volume string) string { return s.path(volumesDir, volume, treeName) }

// Trees is the directory, open, below which all trees lie. It stays the store's, and its
// name is its path, without links.
func (s *Store) Trees() *os.File { return s.volumes }

// MakeTree makes an empty tree for a volume that has a record, with that mode for its
// root. An empty one that is there is what a crash left, and is taken; the error of any
// other is fs.ErrExist.
func (s *Store) MakeTree(volume string, mode uint32) (Identity, error) {
	if err := handle.Check(volume); err != nil {
		return Identity{}, err
	}
	err := isDirectoryOrMissing(s.TreeDir(volume))
	if err == nil {
		s.step("make tree")
		err = worktree.Make(s.TreeDir(volume), mode)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("make the tree of volume %q: %w", volume, err)
	}
	return s.Tree(volume)
}

// Tree is the identity of the tree that a volume has now, or ErrNoTree.
func (s *Store) Tree(volume string) (Identity, error) {
	if err := handle.Check(volume); err != nil {
		return Identity{}, err
	}
	found, err := Identify(s.TreeDir(volume))
	if errors.Is(err, fs.ErrNotExist) {
		return Identity{}, fmt.Errorf("volume %q: %w", volume, ErrNoTree)
	}
	if err != nil {
		return Identity{}, fmt.Errorf("look at the tree of volume %q: %w", volume, err)
	}
	return found, nil
}

// CheckTree returns nil when the volume's tree is the directory that the record names.
// Else the error wraps ErrNoTree or ErrOtherTree, or is one of the disk.
func (s *Store) CheckTree(r Record) error {
	found, err := s.Tree(r.Handle)
	if err != nil {
		return err
	}
	if found != r.Position.Tree {
		return fmt.Errorf("volume %q: %w", r.Handle, ErrOtherTree)
	}
	return nil
}

// SetAsideTree moves a volume's tree to where nothing touches it, and gives the path. why
// is written beside it.
func (s *Store) SetAsideTree(volume, why string) (string, error) {
	if err := handle.Check(volume); err != nil {
		return "", err
	}
	dir, err := storedir.OpenDir(s.volumes, volume)
	if err != nil {
		return "", fmt.Errorf("set the tree of volume %q aside: %w", volume, err)
	}
	defer dir.Close()
	path, err := s.setAside(dir, treeName, about{Volume: volume, Why: why})
	if err != nil {
		return "", fmt.Errorf("set the tree of volume %q aside: %w", volume, err)
	}
	s.settings.Log.Warn("a tree was set aside", "volume", volume, "path", path, "why", why)
	return path, nil
}

// hasTree tells whether something is in the place of a volume's tree, whatever it is.
func (s *Store) hasTree(volume string) bool {
	var stat unix.Stat_t
	return unix.Lstat(s.TreeDir(volume), &stat) == nil
}

// Identify looks at a directory. A link or a file is none: storedir.ErrNotADirectory.
func Identify(path string) (Identity, error) {
	var stat unix.Statx_t
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if err := unix.Statx(unix.AT_FDCWD, path, flags, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &stat); err != nil {
		return Identity{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return Identity{}, fmt.Errorf("%q: %w", path, storedir.ErrNotADirectory)
	}
	found := Identity{Inode: stat.Ino}
	if stat.Mask&unix.STATX_BTIME != 0 {
		found.Born = stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)
	}
	kind, err := fileSystem(path)
	if err != nil {
		return Identity{}, err
	}
	if kind == unix.OVERLAYFS_SUPER_MAGIC && found.Born != 0 {
		found.Inode = 0
	}
	return found, nil
}
