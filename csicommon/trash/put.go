package trash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// attempts is how often Put makes a wrapper when another process removes it,
// taking it for the empty rest of an item.
const attempts = 5

// Put moves name in dir into the bin, whatever it is, and wakes Run. An error
// means that it was not moved: it wraps fs.ErrNotExist when there is no such
// name, unix.EBUSY when it is the place of a mount, fs.ErrInvalid when it is not
// a name, unix.EXDEV when the bin is on another mount. dir stays the caller's.
// When nil is returned the move is on the disk too, but for one whose fsync
// failed: that is logged and no error, since the item is in the bin and trying
// again would find nothing; a crash of the node may then bring it back.
//
// An item is bin/<wrapper>/<name>: a name can be as long as a name may be, so
// nothing can be added to it, and a wrapper tells two of one name apart. The
// rename is the only step that counts: killed before it, an empty wrapper is
// left, which Run removes.
func (b *Bin) Put(dir *os.File, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("put %q into the trash: not the name of one directory entry: %w", name, fs.ErrInvalid)
	}
	it, wrapper, err := b.place(dir, name)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		// A disk without a free inode or block is what deleting is wanted for.
		it, err = b.placeBare(dir, name)
	}
	if err != nil {
		return fmt.Errorf("put %q into the trash: %w", name, err)
	}
	// The new place before the old one: a crash in between must not lose the
	// item, which would use up the disk for ever.
	changed := []*os.File{b.dir, dir}
	if wrapper != nil {
		defer wrapper.Close()
		changed = append([]*os.File{wrapper}, changed...)
	}
	for _, changed := range changed {
		if err := b.sync(changed); err != nil {
			b.log.Warn("a removed directory is in the trash, but perhaps not durably", "volume", name, "error", err)
			break
		}
	}
	// Said before Run has the item, which says when it is deleted.
	b.log.Info("moved to the trash", "volume", name)
	b.release(it)
	return nil
}

// place moves name into a new wrapper and returns that, and the item.
func (b *Bin) place(dir *os.File, name string) (*item, *os.File, error) {
	b.placing.Lock()
	defer b.placing.Unlock()
	for attempt := 1; ; attempt++ {
		if err := removable(dir, name); err != nil {
			return nil, nil, err
		}
		entry := newWrapper()
		wrapper, err := b.wrap(entry)
		if err != nil {
			return nil, nil, err
		}
		err = unix.Renameat(int(dir.Fd()), name, int(wrapper.Fd()), name)
		if err == nil {
			return b.add(entry), wrapper, nil
		}
		_ = wrapper.Close()
		_ = unix.Unlinkat(int(b.dir.Fd()), entry, unix.AT_REMOVEDIR) // Else Run does it.
		if errors.Is(err, unix.ENOENT) && attempt < attempts {
			continue
		}
		if errors.Is(err, unix.EXDEV) {
			return nil, nil, fmt.Errorf("move it: the trash must be on the same mount: %w", err)
		}
		return nil, nil, fmt.Errorf("move it: %w", err)
	}
}

// placeBare moves name into the bin without a wrapper, which takes no inode and
// no block. Its new name is like no other, so the rename replaces nothing and
// need not ask for that with RENAME_NOREPLACE, which not every file system knows.
func (b *Bin) placeBare(dir *os.File, name string) (*item, error) {
	b.placing.Lock()
	defer b.placing.Unlock()
	entry := bareName(name)
	if err := unix.Renameat(int(dir.Fd()), name, int(b.dir.Fd()), entry); err != nil {
		return nil, fmt.Errorf("move it while the disk is full: %w", err)
	}
	return b.add(entry), nil
}

// add takes up an item that Run is not to touch yet.
func (b *Bin) add(entry string) *item {
	b.mu.Lock()
	defer b.mu.Unlock()
	it := b.newItem(entry)
	it.moving = true
	b.items[entry] = it
	return it
}

// release lets Run delete the item.
func (b *Bin) release(it *item) {
	b.mu.Lock()
	it.moving = false
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default: // Run is about to look anyway.
	}
}

func (b *Bin) wrap(entry string) (*os.File, error) {
	if err := unix.Mkdirat(int(b.dir.Fd()), entry, 0o700); err != nil {
		return nil, fmt.Errorf("make %q: %w", entry, err)
	}
	return openDirAt(b.dir, entry, entry)
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
	again, err := reopen(dir)
	if err != nil {
		return err
	}
	defer again.Close()
	return again.Sync()
}

// reopen opens the directory that dir is, which may be an O_PATH handle, for
// reading.
func reopen(dir *os.File) (*os.File, error) {
	return openDirAt(dir, ".", dir.Name())
}

// openDirAt opens the directory name in parent, never what a link leads to.
// path is for errors.
func openDirAt(parent *os.File, name, path string) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(parent.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case !errors.Is(err, unix.EINTR): // FUSE and NFS give it for the runtime's own signals.
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}
