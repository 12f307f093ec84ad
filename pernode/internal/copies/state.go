package copies

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// State is how a copy stands, for those who report on it.
type State struct {
	Exists  bool // the copy's directory is in the store
	Held    bool // a mount shows the copy
	Deleted bool // the pod's mount shows a directory that is no longer in the store, or hidden there
	// Unmounted is true when a hold names a target that is no mount any more:
	// somebody else unmounted it under the pod.
	Unmounted bool
	Hold      Hold // of the holder, if any
}

// State looks at a copy and its mounts without changing either.
func (s *Store) State(volume string) (State, error) {
	state := State{}
	mounts, err := s.mountsOf(volume)
	if err != nil {
		return state, err
	}
	hold, hasHold := s.Hold(volume)
	state.Hold, state.Held = hold, len(mounts) > 0
	if hasHold && len(mounts) == 0 {
		state.Unmounted = s.isGone(hold.Target)
		state.Deleted = !state.Unmounted // it shows something else: the copy was moved
	}
	if state.Held {
		locations, err := s.locations(volume)
		if err != nil {
			return state, err
		}
		for _, m := range mounts {
			state.Deleted = state.Deleted || m.Deleted || m.Location != locations[0]
		}
	}
	var st unix.Stat_t
	err = unix.Fstatat(int(s.copies.Fd()), volume, &st, unix.AT_SYMLINK_NOFOLLOW)
	state.Exists = err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return state, fmt.Errorf("look at the copy of volume %q: %w", volume, err)
	}
	return state, nil
}
