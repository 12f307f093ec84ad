package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// The directories below scratch that are this package's: the rooms, and what is in them.
const (
	roomName      = "staging"
	viewRoomName  = "view"
	stagingPrefix = "bind-"
)

// room is a private mount for binds that only this process is to see.
type room struct {
	// path is a directory of its own below the scratch directory: that one may be a
	// volume of the container, and not ours to unmount.
	path string

	mu    sync.Mutex // guards ready and the making of the private mount
	ready bool
}

// prepare makes the room a private mount of its own, once. It is a small tmpfs: a
// bind must not fail because the store's disk is full. What an earlier process
// left there is cleared now and not at the start, when another process may still
// be using it.
func (r *room) prepare() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready {
		return nil
	}
	if err := r.clear(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.path, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("staging", r.path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=0700"); err != nil {
		return fmt.Errorf("mount a tmpfs at %q: %w", r.path, err)
	}
	if err := unix.Mount("none", r.path, "", unix.MS_PRIVATE, ""); err != nil {
		return undo(r.path, fmt.Errorf("make %q private: %w", r.path, err))
	}
	r.ready = true
	return nil
}

// clear takes away what a killed process left mounted. A staging bind that stays
// would look like one more mount of its volume, and hold it for ever.
func (r *room) clear() error {
	for {
		if err := r.clearEntries(); err != nil {
			return fmt.Errorf("clear the scratch directory %q: %w", r.path, err)
		}
		err := unmountPatiently(r.path)
		if errors.Is(err, errNothingMounted) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unmount the scratch directory %q: %w", r.path, err)
		}
	}
}

func (r *room) clearEntries() error {
	entries, err := os.ReadDir(r.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), stagingPrefix) {
			continue
		}
		if err := removeStaging(filepath.Join(r.path, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func removeStaging(staging string) error {
	if err := unmountPatiently(staging); err != nil && !errors.Is(err, errNothingMounted) {
		return err
	}
	if err := unix.Rmdir(staging); err != nil && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return nil
}

// detach takes away the room with all that is mounted in it, at once.
func (r *room) detach() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ready {
		return nil
	}
	if err := unix.Unmount(r.path, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount the scratch directory %q: %w", r.path, err)
	}
	r.ready = false
	return removeStaging(r.path)
}
