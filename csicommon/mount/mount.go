// Package mount is the one mechanism by which a driver shows a directory of its
// store at a target path, takes it away again, and asks the kernel what is
// mounted where.
//
// It must never delete anything through a target (rmdir is all it does there),
// never unmount lazily or by force (but for a View of its own, which nobody else has),
// never follow a symlink at a target, and never call something mounted or not mounted
// that it could not find out: an error is then the answer, and callers refuse.
package mount

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"liken.sh/csicommon/keyedmutex"
)

// What callers decide on. Every error text of this package is the same each time
// the same thing is wrong, because it ends up in Events that are deduplicated.
var (
	// ErrOption is wrapped when a mount option is none of those accepted.
	ErrOption = errors.New("not an accepted mount option")
	// ErrPath is wrapped when a path is not absolute or names no entry of a directory.
	ErrPath = errors.New("not a path that can be a target")
	// ErrNotDirectory is wrapped when a target is something else than a directory.
	ErrNotDirectory = errors.New("not a directory")
	// ErrMounted is wrapped when something is mounted where a bind should go.
	ErrMounted = errors.New("something is mounted there already")
	// ErrReadOnly is wrapped when a bind was asked to be read-only and is not.
	ErrReadOnly = errors.New("the mount is not read-only")
	// ErrBusy is wrapped when a mount is still used and so was not unmounted.
	ErrBusy = errors.New("still in use")
	// ErrNotEmpty is wrapped when a target holds files once nothing is mounted there.
	ErrNotEmpty = errors.New("not empty")
	// ErrNotShared is wrapped when mounts below a directory would not reach the kubelet.
	ErrNotShared = errors.New("not below a shared mount")
)

// Config is what a System needs.
type Config struct {
	// Scratch is a directory for the staging binds of kernels without
	// mount_setattr(2), and for a View. It must belong to this System alone; it is made
	// with mode 0700 when first needed, and what a killed process left mounted below it
	// is unmounted then.
	Scratch string
	// Log takes the warnings about targets that are left as they are; nil drops them.
	Log *slog.Logger
}

// System mounts and unmounts in the mount namespace of this process. It is safe
// for concurrent use; calls for different targets never wait for each other.
type System struct {
	log     *slog.Logger
	binds   binder
	table   table
	asks    rootQuestion
	views   *room
	hasView atomic.Bool
	targets keyedmutex.Mutex
}

// binder attaches the directory source at the directory target with o on the
// mount before it can be seen there. On error nothing is attached.
type binder interface {
	bind(source, target *os.File, o Options) error
}

// rootQuestion asks whether path is the root of a mount, without following it.
// errUnknown means that this kernel does not tell.
type rootQuestion func(path string) (bool, error)

var errUnknown = errors.New("the kernel does not tell mount roots")

// New looks at what this kernel offers (a seccomp profile may take calls away) and
// chooses by that. It mounts and unmounts nothing.
func New(c Config) (*System, error) {
	if !filepath.IsAbs(c.Scratch) {
		return nil, fmt.Errorf("scratch directory %q is not an absolute path: %w", c.Scratch, ErrPath)
	}
	s := &System{log: c.Log, table: newTable(), asks: statxMountRoot, views: &room{path: filepath.Join(c.Scratch, viewRoomName)}}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if detachedWorks() {
		s.binds = detached{}
		return s, nil
	}
	s.binds = classic{&room{path: filepath.Join(c.Scratch, roomName)}}
	return s, nil
}
