package storedir

import (
	"errors"
	"fmt"
)

// Mounts is what is asked whether a store is a disk of its own.
type Mounts interface {
	IsMount(path string) (bool, error)
}

// RequireMount is a Check that refuses a directory that is no mount point (the flag
// --require-mount), so that a disk that failed to mount does not look like an empty store.
func RequireMount(mounts Mounts) func(dir string) error {
	return func(dir string) error {
		mounted, err := mounts.IsMount(dir)
		if err != nil {
			return fmt.Errorf("ask whether it is a mount point: %w", err)
		}
		if !mounted {
			return errors.New("it is not a mount point and --require-mount is set: mount its disk there, or drop the flag")
		}
		return nil
	}
}
