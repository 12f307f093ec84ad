package trash

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// attempts is how often Put makes a wrapper when another process removes it,
// taking it for the empty rest of an item.
const attempts = 5

// Put moves name in dir into the bin, whatever it is, and wakes Run. When it
// returns nil that is on the disk; an error after the move (of fsync) leaves
// the item in the bin. The error wraps fs.ErrNotExist when there is no such
// name, unix.EBUSY when it is the place of a mount, fs.ErrInvalid when it is
// not a name, unix.EXDEV when the bin is on another mount. dir stays the
// caller's.
//
// An item is bin/<wrapper>/<name>: a name can be as long as a name may be, so
// nothing can be added to it, and a wrapper tells two of one name apart. The
// rename is the only step that counts: killed before it, an empty wrapper is
// left, which Run removes.
func (b *Bin) Put(dir *os.File, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("put %q into the trash: not the name of one directory entry: %w", name, fs.ErrInvalid)
	}
	wrapper, err := b.place(dir, name)
	if err != nil {
		return fmt.Errorf("put %q into the trash: %w", name, err)
	}
	defer wrapper.Close()
	select {
	case b.wake <- struct{}{}:
	default: // Run is about to look anyway.
	}
	// The new place before the old one: a crash in between must not lose the
	// item, which would use up the disk for ever.
	for _, changed := range []*os.File{wrapper, b.dir, dir} {
		if err := syncDir(changed); err != nil {
			return fmt.Errorf("put %q into the trash: it was moved, but perhaps not durably: %w", name, err)
		}
	}
	return nil
}

// place moves name into a new wrapper and returns that.
func (b *Bin) place(dir *os.File, name string) (*os.File, error) {
	b.placing.Lock()
	defer b.placing.Unlock()
	for attempt := 1; ; attempt++ {
		if err := removable(dir, name); err != nil {
			return nil, err
		}
		id := fmt.Sprintf("%019d-%s", time.Now().UnixNano(), rand.Text())
		wrapper, err := b.wrap(id)
		if err != nil {
			return nil, err
		}
		err = unix.Renameat(int(dir.Fd()), name, int(wrapper.Fd()), name)
		if err == nil {
			b.mu.Lock()
			b.items[id] = &item{wrapper: id}
			b.mu.Unlock()
			return wrapper, nil
		}
		_ = wrapper.Close()
		_ = unix.Unlinkat(int(b.dir.Fd()), id, unix.AT_REMOVEDIR) // Else Run does it.
		if errors.Is(err, unix.ENOENT) && attempt < attempts {
			continue
		}
		if errors.Is(err, unix.EXDEV) {
			return nil, fmt.Errorf("move it: the trash must be on the same mount: %w", err)
		}
		return nil, fmt.Errorf("move it: %w", err)
	}
}

func (b *Bin) wrap(id string) (*os.File, error) {
	if err := unix.Mkdirat(int(b.dir.Fd()), id, 0o700); err != nil {
		return nil, fmt.Errorf("make %q: %w", id, err)
	}
	fd, err := unix.Openat(int(b.dir.Fd()), id, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", id, err)
	}
	return os.NewFile(uintptr(fd), id), nil
}

// removable says why name cannot be moved, where the kernel's own error would
// say less.
func removable(dir *os.File, name string) error {
	var stx unix.Statx_t
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	if err := unix.Statx(int(dir.Fd()), name, flags, unix.STATX_BASIC_STATS, &stx); err != nil {
		return fmt.Errorf("look at it: %w", err)
	}
	if stx.Attributes&stx.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0 {
		return fmt.Errorf("it is a mount point, unmount it first: %w", unix.EBUSY)
	}
	return nil
}

// syncDir makes the entries of dir durable, also when dir is an O_PATH handle.
func syncDir(dir *os.File) error {
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %q: %w", dir.Name(), err)
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil {
		return fmt.Errorf("sync %q: %w", dir.Name(), err)
	}
	return nil
}
