package worktree

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// Tree is the root of an application's tree.
type Tree struct {
	root     *os.File
	identity Identity
}

// Identity tells a directory from every other one at the same time. A restart of the
// machine may give the device another number, so what is kept for longer is the inode.
type Identity struct{ Device, Inode uint64 }

// Open opens the tree at dir, an absolute path of the store. dir itself must not be a
// link; whether it is a mount does not matter. The caller closes the Tree.
func Open(dir string) (*Tree, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open tree", Path: dir, Err: err}
	}
	t := &Tree{root: os.NewFile(uintptr(fd), dir)}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		_ = t.root.Close()
		return nil, &os.PathError{Op: "stat tree", Path: dir, Err: err}
	}
	t.identity = Identity{Device: stat.Dev, Inode: stat.Ino}
	return t, nil
}

// ErrGone says that the tree's root was removed while the Tree was open.
var ErrGone = errors.New("the tree's root was removed")

// Close frees the handle. Cursors of the tree stay good until they are closed
// themselves.
func (t *Tree) Close() error {
	if err := t.root.Close(); err != nil {
		return fmt.Errorf("close tree: %w", err)
	}
	return nil
}

// Identity is that of the root. A tree whose root is not the directory that the
// volume's record names was lost or replaced, and must not be committed: what is
// missing in it was not deleted by the application.
func (t *Tree) Identity() Identity { return t.identity }

// top opens the root for reading.
func (t *Tree) top() (*descent.Directory, error) {
	top, err := descent.Open(t.root)
	if err != nil {
		return nil, fmt.Errorf("open the tree's root: %w", err)
	}
	return top, nil
}
