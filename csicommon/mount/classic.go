package mount

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/errortext"
)

// classic is the way of mount(2), which takes flags only in a second call on what
// is already attached. So the first bind goes to a staging directory below a
// private mount, whence nothing propagates, gets its flags there, and the bind that
// the kubelet sees is made from it and inherits them.
type classic struct{ *room }

func (c classic) bind(source, target *os.File, o Options) (err error) {
	defer runtime.KeepAlive(target)
	if err := c.prepare(); err != nil {
		return fmt.Errorf("prepare the scratch directory: %w", err)
	}
	staging, err := os.MkdirTemp(c.path, stagingPrefix)
	if err != nil {
		return fmt.Errorf("make a staging directory in %q: %w", c.path, errortext.WithoutPath(err))
	}
	defer func() {
		if removeErr := removeStaging(staging); removeErr != nil {
			// What stays is one more mount of this source, which would hold it.
			err = errors.Join(err, fmt.Errorf("remove the staging directory in %q: %w", c.path, removeErr))
		}
	}()
	if err := stage(source, staging, o, 0); err != nil {
		return err
	}
	if err := unix.Mount(staging, descriptorPath(target), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("attach the mount: %w", err)
	}
	return nil
}

// stage shows source at a directory of a room, with the flags of o and more.
func stage(source *os.File, staging string, o Options, more uintptr) error {
	defer runtime.KeepAlive(source)
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
	if err := unix.Mount("none", staging, "", unix.MS_REMOUNT|unix.MS_BIND|flags|more, ""); err != nil {
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
	// What the source's mount has would outlast its reason, as with a detached clone.
	if o.ReadOnly {
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

// descriptorPath names the very directory f was opened at, whatever its path leads
// to by now; the kernel follows it without looking at any path.
func descriptorPath(f *os.File) string {
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
}
