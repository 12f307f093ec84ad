package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
	mountutils "k8s.io/mount-utils"
)

// IsMount reports whether path itself is the root of a mount. A path that is
// missing or a symlink is none; a mount whose filesystem no longer answers is one.
// The kernel is asked about this one path, so the cost does not grow with the
// mounts of the node; only kernels before 5.8 make it read the mount table.
func (s *System) IsMount(path string) (bool, error) {
	point, err := Canonical(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("is it a mount: %w", err)
	}
	return s.isRoot(point)
}

// isRoot is IsMount for a canonical path.
func (s *System) isRoot(point string) (bool, error) {
	mounted, err := s.asks(point)
	switch {
	case err == nil:
		return mounted, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return false, nil
	case !errors.Is(err, errUnknown) && !mountutils.IsCorruptedMnt(err):
		return false, fmt.Errorf("is %q a mount: %w", point, err)
	}
	// A dead filesystem answers for itself or for a directory above; which of the
	// two, only the table knows.
	_, mounted, err = s.table.at(point)
	if err != nil {
		return false, fmt.Errorf("is %q a mount: %w", point, err)
	}
	return mounted, nil
}

// statxMountRoot is the rootQuestion of Linux 5.8 and later.
func statxMountRoot(path string) (bool, error) {
	st, err := statxAt(unix.AT_FDCWD, path, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		// A container runtime older than the call forbids it; no path answers EPERM.
		return false, errUnknown
	}
	if err != nil {
		return false, err
	}
	if st.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT == 0 {
		return false, errUnknown
	}
	return st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}

// statxAt asks no server and triggers no automount: a mount that hangs must not
// hang the caller. The error is the bare errno.
func statxAt(dir int, path string, mask int) (unix.Statx_t, error) {
	var st unix.Statx_t
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	if path == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	err := unix.Statx(dir, path, flags, mask, &st)
	return st, err
}

// statxHandle asks about an open directory.
func statxHandle(dir *os.File, mask int) (unix.Statx_t, error) {
	return statxAt(int(dir.Fd()), "", mask)
}
