package mount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ErrFollowsLinks is wrapped when no mount can be had that follows no links: Linux has
// them since 5.10.
var ErrFollowsLinks = errors.New("this kernel has no mounts that follow no symbolic links (Linux 5.10)")

// View shows a directory once more, for this process alone: read-only, and whoever opens
// or watches a path below it and meets a symbolic link there gets an error (ELOOP) of
// the kernel, whenever the link was put there. It is for code that takes paths and not
// handles. What is mounted below the directory is not in it.
type View struct {
	room  *room
	path  string // Without links.
	taken *atomic.Bool
}

// NewView shows source, which the caller opened without following links. The mount is
// private, below the scratch directory of the System: no other namespace gets it, and it
// goes with this one. One that a killed process left in this namespace is taken away
// first. A System has one view at a time, or the error wraps ErrMounted. It wraps
// ErrFollowsLinks where the kernel has no such mounts. On error nothing is mounted.
func (s *System) NewView(source *os.File) (*View, error) {
	if !s.hasView.CompareAndSwap(false, true) {
		return nil, fmt.Errorf("make a view of %q: %w", source.Name(), ErrMounted)
	}
	attached := s.table.attaching()
	defer attached()
	v := &View{room: s.views, taken: &s.hasView}
	if err := v.show(source); err != nil {
		return nil, errors.Join(fmt.Errorf("make a view of %q: %w", source.Name(), err), v.Close())
	}
	return v, nil
}

func (v *View) show(source *os.File) error {
	if err := v.room.prepare(); err != nil {
		return fmt.Errorf("prepare the scratch directory: %w", err)
	}
	scratch, err := filepath.EvalSymlinks(v.room.path)
	if err != nil {
		return fmt.Errorf("find the scratch directory: %w", err)
	}
	v.path = filepath.Join(scratch, stagingPrefix+"view")
	if err := os.Mkdir(v.path, 0o700); err != nil {
		return err
	}
	err = stage(source, v.path, Options{ReadOnly: true, NoExec: true}, unix.MS_NOSYMFOLLOW)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w: %w", ErrFollowsLinks, err)
	}
	if err != nil {
		return err
	}
	return requireNoFollow(v.path)
}

// requireNoFollow looks at what is there: an older kernel takes the flag and ignores it.
func requireNoFollow(point string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(point, &st); err != nil {
		return fmt.Errorf("read the mount's flags: %w", err)
	}
	if int64(st.Flags)&stNoSymFollow == 0 {
		return ErrFollowsLinks
	}
	return nil
}

// Path is where the directory is shown. It has no links.
func (v *View) Path() string { return v.path }

// Close takes the view away, also while something is open below it: nobody writes there,
// and nobody else takes it for gone. It is called once.
func (v *View) Close() error {
	if err := v.room.detach(); err != nil {
		return fmt.Errorf("take away the view: %w", err)
	}
	v.taken.Store(false)
	return nil
}
