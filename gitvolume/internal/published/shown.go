package published

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"liken.sh/csicommon/mount"
)

// ShownBy tells of a directory of the store whether it is mounted anywhere, by whatever
// process it was: a record may be lost while pods see what it named.
func ShownBy(mounts *mount.System) func(dir string) (bool, error) {
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
