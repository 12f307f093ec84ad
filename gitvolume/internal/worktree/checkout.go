package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/durable"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// The modes of a tree's root. A writeable one is open to applications of any user.
const (
	WriteableRoot = 0o777
	ReadOnlyRoot  = 0o755
)

// Make makes the directory dir, for a tree, with that mode. One that is there and empty
// is what a crash left, and is taken; the error of any other is fs.ErrExist.
func Make(dir string, mode uint32) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		entries, listed := os.ReadDir(dir)
		if listed == nil && len(entries) == 0 {
			err = nil
		}
	}
	if err == nil {
		err = unix.Chmod(dir, mode) // Other than mkdir's, it is not for the umask to change.
	}
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err == nil {
			err = durable.SyncDir(path)
		}
	}
	if err != nil {
		return fmt.Errorf("make the tree's root: %w", err)
	}
	return nil
}

// ErrChanged says that a checkout does not have what the driver wrote there.
var ErrChanged = errors.New("somebody changed the checkout")

// Checkout is a tree for read-only volumes: pods see it by mounts that they cannot write
// through, and root alone can write it. It follows a ref in place, with all that Mover
// says of its readers. It is used by one goroutine.
type Checkout struct {
	// Dir is the tree, and Note the path of a file that says what the tree holds: not in
	// the tree.
	Dir, Note string
	Source    Source
	// Label is the SELinux label for what a pod is to read: the runtime relabels only
	// volumes that a pod may write. Where the file system carries none it is not set.
	Label string
	// Room is a Mover's, and counts while the tree holds no commit yet; nil: there is room.
	Room func() error
}

// Follow makes the tree hold the commit, of which that is the tree, and returns what of
// it no tree can have. It finishes first what a crash left unfinished. After an error the
// tree may hold some of the commit before and some of this one; Follow goes on with it.
//
// Files of both commits are seen together only while names are exchanged: all that is new
// is complete and durable before the first of them. A file that the commit after does not
// have goes last. Who holds a file open keeps what it was, and who holds a directory, or
// has it mounted by itself, sees the commit after in it.
func (c *Checkout) Follow(ctx context.Context, commit, tree object.ID) ([]Skip, error) {
	refused, err := c.follow(ctx, commit, tree)
	if err != nil {
		return nil, fmt.Errorf("make the checkout hold %s: %w", commit, err)
	}
	return refused, nil
}

// Commit is which commit the tree holds, zero for none yet, or for some of two.
func (c *Checkout) Commit() (object.ID, error) {
	n, err := readNote(c.Note)
	if err != nil || n.Next != nil {
		return object.ID{}, err
	}
	return n.Commit, nil
}

func (c *Checkout) follow(ctx context.Context, commit, tree object.ID) ([]Skip, error) {
	n, err := readNote(c.Note)
	if err != nil {
		return nil, err
	}
	if n == (note{}) {
		if err := c.make(); err != nil {
			return nil, err
		}
	}
	root, err := Open(c.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	keeper := &noteKeeper{path: c.Note, note: n, commit: commit}
	m := &Mover{Tree: root, Source: c.Source, Intents: keeper, Fresh: metadata.Plain(), Label: c.Label}
	if n.Commit.IsZero() {
		m.Room = c.Room
	}
	if n.Next != nil {
		keeper.commit = n.Next.Commit
		moved, err := m.Resume(ctx, Intent{From: n.Tree, To: n.Next.Tree, Token: n.Next.Token})
		if err := onlyOurs(moved, err); err != nil {
			return nil, err
		}
		keeper.commit = commit
	}
	moved, err := m.Move(ctx, keeper.note.Tree, tree)
	if err := onlyOurs(moved, err); err != nil {
		return nil, err
	}
	return moved.Refused, nil
}

// onlyOurs is the error of a move in a tree that nobody else writes.
func onlyOurs(moved *Moved, err error) error {
	if err != nil {
		return err
	}
	if paths := append(moved.Conflicts, moved.Late...); len(paths) > 0 {
		return fmt.Errorf("%q and %d other paths: %w", paths[0], len(paths)-1, ErrChanged)
	}
	return nil
}

// make makes the root.
func (c *Checkout) make() error {
	err := Make(c.Dir, ReadOnlyRoot)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: it is not empty and nothing says what it holds", ErrChanged)
	}
	if err != nil || c.Label == "" {
		return err
	}
	var label [256]byte
	if _, err := unix.Lgetxattr(c.Dir, labelName, label[:]); err != nil && !errors.Is(err, unix.ERANGE) {
		return nil // No labels here.
	}
	if err := unix.Lsetxattr(c.Dir, labelName, []byte(c.Label), 0); err != nil {
		return fmt.Errorf("label the checkout: %w", err)
	}
	return nil
}
