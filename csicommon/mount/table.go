package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/errortext"
)

// Location says where a directory lies inside its filesystem, whatever mount it is
// reached through: the filesystem's device as the mount table shows it (on btrfs
// stat(2) shows another), and the path from that filesystem's root.
type Location struct {
	Major, Minor uint32
	Path         string
}

// Mount is one mount of this process's namespace.
type Mount struct {
	// ID is the kernel's. Where it has unique ids (Linux 6.8) it is never used
	// again; elsewhere it may be, once the mount is gone.
	ID uint64
	// Location is that of the mount's root; the mark of a deleted directory is
	// taken off its path.
	Location
	// Deleted says that the directory it shows has been removed from its parent.
	Deleted bool
	// Point is where it is mounted, seen from this process's root; empty when no path leads
	// there any more. It and the path of the Location are not whole when they are many times
	// as long as a path that can be opened.
	Point string
	// ReadOnly is the flag of this mount, not that of its filesystem.
	ReadOnly bool
	// Shared says that what is mounted below it shows in its peers.
	Shared bool
}

// ErrNoLocation is wrapped by Locate when the filesystem does not show where in it
// the root of a mount lies, so that mounts of one directory cannot be found.
var ErrNoLocation = errors.New("the filesystem does not show the roots of its mounts")

// table answers from the kernel's mount table. Its error means that it could not
// be read, and says nothing about any mount.
type table interface {
	// at returns the mount whose root the canonical path point leads to.
	at(point string) (Mount, bool, error)
	// holding returns the mount that an open directory was reached through.
	holding(dir *os.File) (Mount, error)
	// showing returns every mount whose root is loc.
	showing(loc Location) ([]Mount, error)
	// attaching is called before this process attaches a mount, and what it returns
	// afterwards, whether or not that worked.
	attaching() (attached func())
	rescan() error
}

func newTable() table {
	if index, err := newIndex(); err == nil {
		return index
	}
	return mountinfoTable{}
}

// At returns the topmost mount exactly at point, which may be spelled through
// symlinks; mounted is false when nothing is mounted there or it does not exist.
func (s *System) At(point string) (m Mount, mounted bool, err error) {
	canonical, err := Canonical(point)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return Mount{}, false, nil
	}
	if err != nil {
		return Mount{}, false, fmt.Errorf("look up the mount: %w", err)
	}
	m, mounted, err = s.table.at(canonical)
	if err != nil {
		return Mount{}, false, fmt.Errorf("look up the mount at %q: %w", canonical, err)
	}
	return m, mounted, nil
}

// Showing returns every mount of this namespace whose root is loc, including those
// whose directory was deleted and perhaps made again since. Its cost follows the
// mounts that are new since the last call. A mount is found under the path its
// directory had when it was first seen, until Rescan; so is one that another
// process cloned (open_tree) before a call and attached after it.
func (s *System) Showing(loc Location) ([]Mount, error) {
	mounts, err := s.table.showing(loc)
	if err != nil {
		return nil, fmt.Errorf("find the mounts of %q: %w", loc.Path, err)
	}
	return mounts, nil
}

// Rescan reads the whole mount table again. It is called before what Showing does
// not find is removed, and now and then. It holds up no call that runs meanwhile.
func (s *System) Rescan() error {
	if err := s.table.rescan(); err != nil {
		return fmt.Errorf("read the mount table: %w", err)
	}
	return nil
}

// RequireShared returns an error that wraps ErrNotShared unless dir, the kubelet's
// directory, lies on a shared mount. Without one every mount stays in this
// namespace, and the pod writes to the node's own disk instead of its volume.
func (s *System) RequireShared(dir string) error {
	fd, err := openPath(dir, unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("open %q: %w", dir, err)
	}
	handle := os.NewFile(uintptr(fd), dir)
	defer handle.Close()
	m, err := s.table.holding(handle)
	if err != nil {
		return fmt.Errorf("find the mount that %q lies on: %w", dir, err)
	}
	if !m.Shared {
		return fmt.Errorf("%q is %w: its mount propagation keeps what is mounted there from the kubelet; "+
			"on the node run \"mount --bind %s %s && mount --make-rshared %s\", "+
			"and in the container mount it with mountPropagation: Bidirectional", dir, ErrNotShared, dir, dir, dir)
	}
	return nil
}

// locateTries bounds how often Locate starts again because what lies above the
// directory was renamed or moved between two looks.
const locateTries = 5

// Locate returns where an open directory lies. It wraps fs.ErrNotExist when the
// directory was deleted, and ErrNoLocation on NFS, which shows "/" as the root of
// each of its mounts.
func (s *System) Locate(dir *os.File) (Location, error) {
	if err := requireRoots(dir); err != nil {
		return Location{}, fmt.Errorf("locate the directory: %w", err)
	}
	for range locateTries {
		m, err := s.table.holding(dir)
		if err != nil {
			return Location{}, fmt.Errorf("locate the directory: %w", err)
		}
		reached, err := pathOf(dir)
		if err != nil {
			return Location{}, fmt.Errorf("locate the directory: %w", err)
		}
		if below, ok := relative(m.Point, reached); ok {
			return Location{Major: m.Major, Minor: m.Minor, Path: path.Join(m.Path, below)}, nil
		}
	}
	return Location{}, errors.New("locate the directory: its mount is not reachable from the root of this process")
}

func requireRoots(dir *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
		return fmt.Errorf("read its filesystem's type: %w", err)
	}
	if st.Type == unix.NFS_SUPER_MAGIC {
		return fmt.Errorf("it lies on NFS: %w", ErrNoLocation)
	}
	return nil
}

// deletedMark is what the kernel puts behind the path of an open file that was
// deleted. It may as well be the end of a real directory's name.
const deletedMark = " (deleted)"

// pathOf returns the path at which dir is reached now.
func pathOf(dir *os.File) (string, error) {
	reached, err := os.Readlink(descriptorPath(dir))
	if err != nil {
		return "", fmt.Errorf("read its path: %w", errortext.WithoutPath(err))
	}
	if !strings.HasSuffix(reached, deletedMark) {
		return reached, nil
	}
	there, err := os.Lstat(reached)
	if err != nil {
		return "", fmt.Errorf("it was deleted: %w", fs.ErrNotExist)
	}
	here, err := dir.Stat()
	if err != nil {
		return "", fmt.Errorf("look at it: %w", errortext.WithoutPath(err))
	}
	if !os.SameFile(there, here) {
		return "", fmt.Errorf("it was deleted: %w", fs.ErrNotExist)
	}
	return reached, nil
}

// relative returns what follows point in p, when p lies at or below it.
func relative(point, p string) (string, bool) {
	if point == "/" || p == point {
		return strings.TrimPrefix(p, point), strings.HasPrefix(p, "/")
	}
	return strings.CutPrefix(p, point+"/")
}
