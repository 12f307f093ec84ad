// Package descent goes through a directory tree that a hostile application
// wrote, by directory handles alone: every type of file, every name, any
// depth, names that vanish and directories that are renamed meanwhile.
//
// It must NEVER follow a link, never cross a mount, never resolve a path of
// more than one name, and never need more handles or memory for a deeper tree
// than the fixed window below (but for some 200 bytes for each level it is
// in). It changes nothing: what a visitor does to an entry is the visitor's.
package descent

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// window is how many directories are held open at once, whatever the depth.
// Two descents (measuring, deleting) must fit many times into the usual soft
// limit of 1,024 open files.
const window = 64

// ErrMoved says that a directory was moved to another parent while the descent
// was more than the window below that parent, so that there is no safe way
// back. Starting again from the top is the remedy.
var ErrMoved = errors.New("directory was moved meanwhile")

// Visitor is told of what a descent meets. An error from any method ends the
// descent and is returned by Walk as it is.
type Visitor interface {
	// Entry is called for each entry of a directory and says whether to enter
	// it. What cannot be entered because it is no directory, or no longer, is
	// passed over in silence.
	Entry(ctx context.Context, dir *Directory, name string) (enter bool, err error)
	// Leave is called with the parent after everything in its directory name
	// was visited.
	Leave(dir *Directory, name string) error
	// Unreadable is called with the directory at path (see Directory.Path)
	// that could not be opened (ErrMount: because it is a mount) or not be
	// read to its end. The descent goes on with the next one.
	Unreadable(path string, err error) error
}

// Walk visits everything below root, depth first, and closes root. An entry
// that is made or renamed meanwhile may be visited once, twice or not at all.
func Walk(ctx context.Context, root *Directory, visitor Visitor) error {
	w := &walk{visitor: visitor, stack: []*Directory{root}}
	defer w.close()
	for len(w.stack) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir := w.stack[len(w.stack)-1]
		name, err := dir.Next()
		switch {
		case err == nil:
			err = w.visit(ctx, dir, name)
		case errors.Is(err, ErrEnd):
			err = w.leave()
		default:
			if err = visitor.Unreadable(dir.Path(""), err); err == nil {
				err = w.leave()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walk is one descent. stack holds the directories from root to where it is;
// those below index shut are closed and are opened again on the way up.
type walk struct {
	visitor Visitor
	stack   []*Directory
	shut    int
}

func (w *walk) visit(ctx context.Context, dir *Directory, name string) error {
	enter, err := w.visitor.Entry(ctx, dir, name)
	if err != nil || !enter {
		return err
	}
	child, err := dir.Enter(name)
	if Vanished(err) {
		return nil
	}
	if err != nil {
		return w.visitor.Unreadable(dir.Path(name), err)
	}
	w.stack = append(w.stack, child)
	if len(w.stack)-w.shut <= window {
		return nil
	}
	// The uppermost open one will be needed last.
	if err := w.stack[w.shut].suspend(); err != nil {
		return err
	}
	w.shut++
	return nil
}

func (w *walk) leave() error {
	last := len(w.stack) - 1
	child := w.stack[last]
	if last == 0 {
		w.stack = nil
		return child.Close()
	}
	parent := w.stack[last-1]
	if w.shut == last {
		if err := parent.resume(child); err != nil {
			return err
		}
		w.shut--
	}
	w.stack[last] = nil
	w.stack = w.stack[:last]
	if err := child.Close(); err != nil {
		return fmt.Errorf("close %q: %w", parent.Path(child.name), err)
	}
	return w.visitor.Leave(parent, child.name)
}

func (w *walk) close() {
	for _, dir := range w.stack[min(w.shut, len(w.stack)):] {
		_ = dir.Close() // Opened for reading: there is nothing a close could lose.
	}
}

// Vanished reports whether err says that a name no longer leads to a
// directory entry of the kind it was: removed, or swapped for a link or a file.
func Vanished(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) ||
		errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ESTALE)
}
