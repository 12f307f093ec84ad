package published

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/mount"
)

// mount mounts the tree, unless it is there. What else of the store is there goes: it is
// what an earlier process left of a checkout that is no more.
func (v *Volumes) mount(dir, path string, options mount.Options) error {
	tree, err := openTree(dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	if v.isMountedAt(path, dir, options.ReadOnly) {
		return nil
	}
	ours, err := v.targets.ShowsStore(path)
	if err == nil && ours {
		_, err = v.targets.TakeOff(path, true)
	}
	if err != nil {
		return err
	}
	return v.targets.Show(tree, path, options)
}

// isMountedAt tells whether a tree is what is mounted at the canonical path, and whether it
// can be written there is as it says.
func (v *Volumes) isMountedAt(path, dir string, isReadOnly bool) bool {
	parent, err := openTree(filepath.Dir(dir))
	if err != nil {
		return false
	}
	defer parent.Close()
	if m, shown := v.settings.Mounts.Shows(path, parent, filepath.Base(dir)); shown {
		return m.ReadOnly == isReadOnly
	}
	// It cannot be told so cheaply on every kernel.
	tree, err := openTree(dir)
	if err != nil {
		return false
	}
	defer tree.Close()
	at, err := v.settings.Mounts.Locate(tree)
	if err != nil {
		return false
	}
	m, mounted, err := v.settings.Mounts.At(path)
	return err == nil && mounted && !m.Deleted && m.ReadOnly == isReadOnly && m.Location == at
}

// MountedAnywhere tells of a directory of the store whether it is mounted at any path, by
// whatever process it was: a record may be lost while pods see what it named.
func MountedAnywhere(mounts *mount.System) func(dir string) (bool, error) {
	return func(dir string) (bool, error) {
		tree, err := openTree(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		defer tree.Close()
		at, err := mounts.Locate(tree)
		if errors.Is(err, mount.ErrNoLocation) {
			return false, nil // It cannot be told on this file system.
		}
		if err != nil {
			return false, fmt.Errorf("locate a checkout: %w", err)
		}
		// What an earlier process was attaching when this one began is found only anew.
		if err := mounts.Rescan(); err != nil {
			return false, err
		}
		found, err := mounts.Showing(at)
		return slices.ContainsFunc(found, func(m mount.Mount) bool { return !m.Deleted }), err
	}
}

// openTree opens a directory of the store as a place, without following a link.
func openTree(dir string) (*os.File, error) { return openDir(dir, unix.O_PATH) }

func openDir(dir string, how int) (*os.File, error) {
	fd, err := unix.Open(dir, how|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}
