package descent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// listing is the size in bytes of what is read of a directory at once:
	// some 250 names, and room for the longest one many times over.
	listing = 8 << 10
	// longest is where Path stops: a path of a hostile tree can be many
	// megabytes, and it goes into a log line.
	longest = 4 << 10
)

// ErrEnd is what Next gives after the last name.
var ErrEnd = errors.New("no more names in the directory")

// Directory is one open directory of a tree and the place reached in reading
// it. It is used by one goroutine.
type Directory struct {
	name   string // In parent; empty for the one Open gave.
	parent *Directory
	depth  int // Levels below the one Open gave.
	fd     int
	tree   *tree

	buffer []byte // Of size listing, taken by the first read.
	unread []byte // The part of buffer that Next has not given yet.
	cookie int64  // The directory offset behind the last name given.
	kind   byte   // What the listing says that name is.
	self   identity
}

// tree is what the directories of one tree share.
type tree struct {
	device uint64   // Of the top: see isMount.
	spare  [][]byte // Buffers of closed directories, so that a million directories make no garbage.
}

// identity tells a directory from every other one at the same time.
type identity struct{ device, inode, mount uint64 }

// Open makes dir, which may be an O_PATH handle, the top of a tree. dir stays
// the caller's, and its reading position is not touched. Whether dir itself
// is a mount does not matter.
func Open(dir *os.File) (*Directory, error) {
	fd, err := openat(int(dir.Fd()), ".")
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", dir.Name(), err)
	}
	top := &Directory{fd: fd, tree: &tree{}}
	var stx unix.Statx_t
	if err := statx(fd, "", &stx); err != nil {
		_ = top.Close()
		return nil, fmt.Errorf("stat directory %q: %w", dir.Name(), err)
	}
	top.tree.device = device(&stx)
	return top, nil
}

// Fd is the handle, for calls of the *at family with one of the names Next
// gave. It is valid until the visitor's method returns.
func (d *Directory) Fd() int { return d.fd }

// Depth is how many levels the directory is below the one Open gave.
func (d *Directory) Depth() int { return d.depth }

// Close frees the handle. The directories entered from it stay open.
func (d *Directory) Close() error {
	if d.buffer != nil {
		d.tree.spare = append(d.tree.spare, d.buffer)
	}
	fd := d.fd
	d.fd, d.buffer, d.unread = -1, nil, nil
	return unix.Close(fd)
}

// Path is for people: where name is, seen from the tree's top; with an empty
// name, where the directory is. The front of a path of more than 4 KiB is left
// out. Never open what it says.
func (d *Directory) Path(name string) string {
	var names []string
	if name != "" {
		names = append(names, name)
	}
	size := len(name)
	for at := d; at.parent != nil; at = at.parent {
		if size += 1 + len(at.name); size > longest {
			names = append(names, "...")
			break
		}
		names = append(names, at.name)
	}
	if len(names) == 0 {
		return "."
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(names, "/")
}

// Next gives the directory's next name, ErrEnd after the last one.
func (d *Directory) Next() (string, error) {
	// The layout is the kernel's struct linux_dirent64: inode (8 bytes),
	// offset of the next entry (8), length of this one (2), type (1), name.
	const header = 19
	for {
		if len(d.unread) == 0 {
			if err := d.fill(); err != nil {
				return "", err
			}
		}
		size := 0
		if len(d.unread) > header {
			size = int(binary.NativeEndian.Uint16(d.unread[16:]))
		}
		if size <= header || size > len(d.unread) {
			return "", fmt.Errorf("read directory: entry of %d bytes: %w", size, unix.EIO)
		}
		entry := d.unread[:size]
		d.unread = d.unread[size:]
		d.cookie = int64(binary.NativeEndian.Uint64(entry[8:]))
		d.kind = entry[header-1]
		name, _, _ := bytes.Cut(entry[header:], []byte{0})
		if text := string(name); text != "." && text != ".." {
			return text, nil
		}
	}
}

// MayBeDirectory tells, at no cost, whether the name Next gave last can be a
// directory: a file system need not say in a listing what a name is.
func (d *Directory) MayBeDirectory() bool {
	return d.kind == unix.DT_DIR || d.kind == unix.DT_UNKNOWN
}

func (d *Directory) fill() error {
	if last := len(d.tree.spare) - 1; d.buffer == nil && last >= 0 {
		d.buffer, d.tree.spare = d.tree.spare[last], d.tree.spare[:last]
	} else if d.buffer == nil {
		d.buffer = make([]byte, listing)
	}
	n, err := restarted(func() (int, error) { return unix.Getdents(d.fd, d.buffer) })
	switch {
	case errors.Is(err, unix.ENOENT), err == nil && n == 0:
		// ENOENT: the directory was removed while it was open.
		return ErrEnd
	case err != nil:
		return fmt.Errorf("read directory: %w", err)
	}
	d.unread = d.buffer[:n]
	return nil
}

// suspend closes the directory until resume, which goes on behind the name
// given last: file systems keep a directory offset valid across a close, NFS
// exports depend on it. Where one does not (overlay, tmpfs before Linux 6.6),
// names may be missed or given twice if the directory changes meanwhile.
func (d *Directory) suspend() error {
	var stx unix.Statx_t
	if err := statx(d.fd, "", &stx); err != nil {
		return fmt.Errorf("stat directory %q: %w", d.Path(""), err)
	}
	d.self = identify(&stx)
	if err := d.Close(); err != nil {
		return fmt.Errorf("close directory %q: %w", d.Path(""), err)
	}
	return nil
}

// resume opens the directory again as the parent of child. ".." leads to
// another directory once child was moved, so only the very directory that was
// suspended is taken.
func (d *Directory) resume(child *Directory) error {
	fd, err := openat(child.fd, "..")
	if err != nil {
		return fmt.Errorf("open parent of %q again: %w", child.Path(""), err)
	}
	var stx unix.Statx_t
	err = statx(fd, "", &stx)
	if err == nil && identify(&stx) != d.self {
		err = ErrMoved
	}
	if err == nil {
		_, err = unix.Seek(fd, d.cookie, io.SeekStart)
	}
	if err != nil {
		_ = unix.Close(fd)
		return fmt.Errorf("go back up from %q: %w", child.Path(""), err)
	}
	d.fd = fd
	return nil
}
