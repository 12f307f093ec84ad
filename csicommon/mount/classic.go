package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/errortext"
)

// roomName and stagingPrefix mark the directories below scratch that are this package's.
const (
	roomName      = "staging"
	stagingPrefix = "bind-"
)

// classic is the way of mount(2), which takes flags only in a second call on what
// is already attached. So the first bind goes to a staging directory below a
// private mount, whence nothing propagates, gets its flags there, and the bind that
// the kubelet sees is made from it and inherits them.
type classic struct {
	// room is the private mount, a directory of its own below the scratch directory:
	// that one may be a volume of the container, and not ours to unmount.
	room string

	mu    sync.Mutex // guards ready and the making of the private mount
	ready bool
}

func (c *classic) bind(source, target *os.File, o Options) (err error) {
	defer runtime.KeepAlive(source)
	defer runtime.KeepAlive(target)
	if err := c.prepare(); err != nil {
		return fmt.Errorf("prepare the scratch directory: %w", err)
	}
	staging, err := os.MkdirTemp(c.room, stagingPrefix)
	if err != nil {
		return fmt.Errorf("make a staging directory in %q: %w", c.room, errortext.WithoutPath(err))
	}
	defer func() {
		if removeErr := removeStaging(staging); removeErr != nil {
			// What stays is one more mount of this source, which would hold it.
			err = errors.Join(err, fmt.Errorf("remove the staging directory in %q: %w", c.room, removeErr))
		}
	}()
	if err := stage(source, staging, o); err != nil {
		return err
	}
	if err := unix.Mount(staging, descriptorPath(target), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("attach the mount: %w", err)
	}
	return nil
}

func stage(source *os.File, staging string, o Options) error {
	if err := unix.Mount(descriptorPath(source), staging, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind the source: %w", err)
	}
	// As with a detached clone: no peer of the store's mount.
	if err := unix.Mount("none", staging, "", unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mount private: %w", err)
	}
	flags, err := remountFlags(staging, o)
	if err != nil {
		return fmt.Errorf("read the source's flags: %w", err)
	}
	if err := unix.Mount("none", staging, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("set the flags: %w", err)
	}
	return nil
}

// stNoSymFollow is ST_NOSYMFOLLOW, which golang.org/x/sys lacks.
const stNoSymFollow = 0x2000

// remountFlags adds those of o to the flags that the bind at path took over from
// its source: a remount drops what it does not name, and the kernel refuses to
// drop what is locked. Only the atime settings stay when none of them is named.
func remountFlags(path string, o Options) (uintptr, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, err
	}
	held := int64(st.Flags)
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if o.ReadOnly || held&unix.ST_RDONLY != 0 {
		flags |= unix.MS_RDONLY
	}
	if o.NoExec || held&unix.ST_NOEXEC != 0 {
		flags |= unix.MS_NOEXEC
	}
	if held&stNoSymFollow != 0 {
		flags |= unix.MS_NOSYMFOLLOW
	}
	if o.NoAtime {
		flags |= unix.MS_NOATIME
	}
	return flags, nil
}

// prepare makes the room a private mount of its own, once. It is a small tmpfs: a
// bind must not fail because the store's disk is full. What an earlier process
// left there is cleared now and not at the start, when another process may still
// be using it.
func (c *classic) prepare() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready {
		return nil
	}
	if err := c.clear(); err != nil {
		return err
	}
	if err := os.MkdirAll(c.room, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("staging", c.room, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=0700"); err != nil {
		return fmt.Errorf("mount a tmpfs at %q: %w", c.room, err)
	}
	if err := unix.Mount("none", c.room, "", unix.MS_PRIVATE, ""); err != nil {
		return undo(c.room, fmt.Errorf("make %q private: %w", c.room, err))
	}
	c.ready = true
	return nil
}

// clear takes away what a killed process left mounted. A staging bind that stays
// would look like one more mount of its volume, and hold it for ever.
func (c *classic) clear() error {
	for {
		if err := c.clearEntries(); err != nil {
			return fmt.Errorf("clear the scratch directory %q: %w", c.room, err)
		}
		err := unmountPatiently(c.room)
		if errors.Is(err, errNothingMounted) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unmount the scratch directory %q: %w", c.room, err)
		}
	}
}

func (c *classic) clearEntries() error {
	entries, err := os.ReadDir(c.room)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), stagingPrefix) {
			continue
		}
		if err := removeStaging(filepath.Join(c.room, entry.Name())); err != nil {
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

// descriptorPath names the very directory f was opened at, whatever its path leads
// to by now; the kernel follows it without looking at any path.
func descriptorPath(f *os.File) string {
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
}
