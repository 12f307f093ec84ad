package writeable

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/worktree"
)

// lateness is what this process knows of what Position.Late tells.
type lateness struct {
	// paths are what the application wrote; none: an earlier process, or move, knew them.
	paths []string
	// isCommitted says that the last look at the tree left all of them committed, and leftOut
	// is one that it left out.
	isCommitted bool
	leftOut     string
}

// commitLate commits what the application wrote over upstream's change, as far as that can be
// now. The next look goes on with it.
func (v *Volume) commitLate(ctx context.Context, why error) error {
	v.late = lateness{}
	var written *treeConflict
	if errors.As(why, &written) && written.moved {
		v.late.paths = written.paths
	}
	v.agenda.addPaths(v.late.paths)
	if len(v.late.paths) == 0 {
		v.agenda.addEverything()
	}
	v.clock.wrote(time.Now())
	if v.Arming.Unarmed != nil {
		return nil //nolint:nilerr // It is why nothing is to be committed.
	}
	return v.commit(ctx, true)
}

// noteLate notes what a look found of what is late, and whether the rest of it is committed.
// Lateness ends with that, unless the side branch has only a part: then it ends with the push.
func (v *Volume) noteLate(result *worktree.Result, isCommitted bool) error {
	p := v.position
	if !p.Late {
		return nil
	}
	v.late.note(result, isCommitted)
	if !p.Diverged || !v.late.isCommitted || !p.Side.IsZero() && p.Side != p.Tip {
		return nil
	}
	p.Late = false
	return v.keep(p)
}

func (l *lateness) note(result *worktree.Result, isCommitted bool) {
	l.isCommitted, l.leftOut = isCommitted, ""
	for _, path := range result.Waiting {
		l.leave(path)
	}
	for path, entry := range result.Memory.All() {
		if l.waitsFor(entry) {
			l.leave(path)
		}
	}
}

// waitsFor tells of a path that is left out whether it is worth waiting for.
func (l *lateness) waitsFor(entry worktree.Entry) bool {
	switch entry.Left {
	case 0:
		return false
	case worktree.Unsettled:
		return true
	case worktree.Name, worktree.Kind:
		// The one was never upstream's, and the other was committed as deleted.
		return false
	}
	// What is left out for good must not keep a volume that does not know better. What nobody
	// has committed would not take back a change of upstream's.
	return len(l.paths) > 0 || entry.Mode != 0 && entry.Left != worktree.Rules
}

func (l *lateness) leave(path string) {
	concerns := func(late string) bool { return isWithin(late, path) || isWithin(path, late) }
	if len(l.paths) == 0 || slices.ContainsFunc(l.paths, concerns) {
		l.isCommitted, l.leftOut = false, path
	}
}

// isWithin tells whether a path is a directory, or below it.
func isWithin(path, directory string) bool {
	return directory == metadata.Root || path == directory || strings.HasPrefix(path, directory+"/")
}

// why is why the volume stays on its side branch.
func (l *lateness) why() error {
	if l.leftOut == "" {
		return errLate
	}
	return fmt.Errorf("%w: %s", errLate, printable(l.leftOut))
}

// errLate is why a volume stays diverged although the ref has all that was committed.
var errLate = errors.New("what the application wrote over upstream's change is not committed yet")
