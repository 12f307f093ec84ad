package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// errMeet says that two sides changed what only git's own merge may decide on.
var errMeet = errors.New("the changes meet")

// merging merges trees, one after the other, of which each has much in common with the
// one before.
type merging struct {
	repository *Repository
	merger     Merger
	trees      treeCache
	read       int // Trees read in one merge, bounded as those of a Diff.
}

func (r *Repository) newMerging(merger Merger) *merging {
	return &merging{repository: r, merger: merger, trees: treeCache{repository: r}}
}

// merge is the tree with the changes of both sides: base to ours, and base to theirs.
// Where they do not meet, that costs what the changed directories do and no content is
// read. Where they meet, the Merger merges the whole trees, since what it finds to be
// renamed may lie anywhere. The zero id is the empty tree.
func (m *merging) merge(ctx context.Context, base, ours, theirs object.ID) (object.ID, []string, error) {
	switch {
	case base == theirs, ours == theirs:
		return ours, nil, nil
	case base == ours:
		return theirs, nil, nil
	}
	m.read = 0
	tree, err := m.tree(base, ours, theirs, 0)
	switch {
	case errors.Is(err, errMeet):
		return m.ask(ctx, base, ours, theirs)
	case err != nil:
		return object.ID{}, nil, fmt.Errorf("merge the trees %s and %s: %w", ours, theirs, err)
	}
	return tree, nil, nil
}

// tree merges one directory. The zero id is one without anything, which git drops.
func (m *merging) tree(base, ours, theirs object.ID, depth int) (object.ID, error) {
	if m.read++; depth > maxDepth || m.read > maxDirectories {
		return object.ID{}, fmt.Errorf("compare %d directories, of which one lies %d deep: %w", m.read, depth, ErrTooLarge)
	}
	have, err := m.trees.nodes(ours)
	if err != nil {
		return object.ID{}, fmt.Errorf("merge a directory: %w", err)
	}
	// Mostly as many, and a few new ones.
	merged := make([]node, 0, len(have)+16)
	changed := false
	err = m.trees.match(base, ours, theirs, func(base, ours, theirs *node) error {
		result, err := m.entry(base, ours, theirs, depth)
		if err != nil {
			return err
		}
		if result != nil {
			merged = append(merged, *result)
		}
		changed = changed || result != ours
		return nil
	})
	switch {
	case err != nil:
		return object.ID{}, err
	case !changed:
		return ours, nil
	case len(merged) == 0:
		return object.ID{}, nil
	}
	return m.put(merged, ours, have)
}

// put writes what one of our directories has become.
func (m *merging) put(merged []node, ours object.ID, have []node) (object.ID, error) {
	if len(merged) > cachedNodes {
		// It will be read again, and a delta that is pending cannot be.
		return m.repository.putTree(merged)
	}
	id, err := m.repository.putTreeOver(merged, ours, have)
	if err == nil {
		m.trees.remember(id, merged)
	}
	return id, err
}

// entry merges what stands at one name. What follows from renames needs no look at
// them, as it needs one of these: a path that both sides changed, or that both took
// away (one of them may have moved it elsewhere, which git calls a conflict). A path
// that one side alone took away leaves the other no change to carry after it.
func (m *merging) entry(base, ours, theirs *node, depth int) (*node, error) {
	switch {
	case same(base, theirs):
		return ours, nil
	case same(base, ours):
		return theirs, m.checkTaken(theirs)
	case base == nil && same(ours, theirs):
		return ours, nil
	case directories(base, ours, theirs):
		id, err := m.tree(directoryID(base), directoryID(ours), directoryID(theirs), depth+1)
		switch {
		case err != nil || id.IsZero():
			return nil, err
		case ours != nil && ours.id == id:
			return ours, nil
		}
		directory := newNode(nameOf(ours, theirs), object.Directory, id)
		return &directory, nil
	case same(ours, theirs) && ours != nil && !ours.isDir() && !base.isDir():
		return ours, nil
	}
	return nil, errMeet
}

// checkTaken refuses an entry that a tree of ours must not get: a name that git cannot
// hold, or an object that the store has lost.
func (m *merging) checkTaken(taken *node) error {
	if taken == nil {
		return nil
	}
	if err := CheckName(taken.name); err != nil {
		return err
	}
	switch mode := taken.entry().Mode; mode {
	case object.Submodule:
		return nil
	case object.Directory:
		return m.repository.want(taken.id, git.ObjectTree)
	default:
		return m.repository.want(taken.id, git.ObjectBlob)
	}
}

// same tells whether two entries are equal to git, which reads odd modes as the nearest
// of those it writes.
func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.id == b.id && (a.mode == b.mode || a.entry().Mode == b.entry().Mode)
}

// directories tells whether all that is there is directories.
func directories(nodes ...*node) bool {
	return !slices.ContainsFunc(nodes, func(n *node) bool { return n != nil && !n.isDir() })
}

// directoryID is the id of a directory; the empty tree's of anything else.
func directoryID(n *node) object.ID {
	if n == nil || !n.isDir() {
		return object.ID{}
	}
	return n.id
}

func nameOf(nodes ...*node) string {
	for _, n := range nodes {
		if n != nil {
			return n.name
		}
	}
	return ""
}
