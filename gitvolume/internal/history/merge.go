package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

// errMeet says that two sides changed what only git's own merge may decide on.
var errMeet = errors.New("the changes meet")

// merge is the tree with the changes of both sides: base to ours, and base to theirs.
// Where they do not meet, that costs what the changed directories do and no content is
// read. Where they meet, the Merger merges the whole trees, since what it finds to be
// renamed may lie anywhere. The zero id is the empty tree.
func (r *Repository) merge(ctx context.Context, merger Merger, base, ours, theirs object.ID) (object.ID, []string, error) {
	m := merging{repository: r}
	switch err := m.trees("", base, ours, theirs, 0); {
	case errors.Is(err, errMeet):
		return r.ask(ctx, merger, base, ours, theirs)
	case err != nil:
		return object.ID{}, nil, fmt.Errorf("merge the trees %s and %s: %w", ours, theirs, err)
	}
	tree, err := r.Edit(ours, m.changes)
	if err != nil {
		return object.ID{}, nil, fmt.Errorf("put changes into the tree %s: %w", ours, err)
	}
	return tree, nil, nil
}

// merging collects what has to change in ours.
type merging struct {
	repository *Repository
	changes    []Change
	read       int // Trees read, bounded as those of a Diff.
}

// trees merges one directory, of which both sides differ from the base.
func (m *merging) trees(prefix string, base, ours, theirs object.ID, depth int) error {
	if m.read++; depth > maxDepth || m.read > maxDifferences {
		return fmt.Errorf("compare %d directories, of which one lies %d deep: %w", m.read, depth, ErrTooLarge)
	}
	return m.repository.matchThree(base, ours, theirs, func(base, ours, theirs *node) error {
		return m.entry(prefix, base, ours, theirs, depth)
	})
}

// entry merges what stands at one name. What follows from renames needs no look at
// them, as it needs one of these: a path that both sides changed, or that both took
// away (one of them may have moved it elsewhere, which git calls a conflict). A path
// that one side alone took away leaves the other no change to carry after it.
func (m *merging) entry(prefix string, base, ours, theirs *node, depth int) error {
	name := nameOf(base, ours, theirs)
	switch {
	case same(base, theirs):
		return nil
	case same(base, ours):
		m.take(prefix+name, theirs)
		return nil
	case base == nil && same(ours, theirs):
		return nil
	case directories(base, ours, theirs):
		return m.trees(prefix+name+"/", treeID(base), treeID(ours), treeID(theirs), depth+1)
	case same(ours, theirs) && ours != nil && !ours.isDir() && !base.isDir():
		return nil
	}
	return errMeet
}

// take makes theirs what stands at the path.
func (m *merging) take(path string, theirs *node) {
	change := Change{Path: path}
	if theirs != nil {
		entry := theirs.entry()
		change.Mode, change.Blob = entry.Mode, entry.ID
	}
	m.changes = append(m.changes, change)
}

// same tells whether two entries are equal to git, which reads odd modes as the nearest
// of those it writes.
func same(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.id == b.id && a.entry().Mode == b.entry().Mode
}

// directories tells whether all that is there is directories.
func directories(nodes ...*node) bool {
	return !slices.ContainsFunc(nodes, func(n *node) bool { return n != nil && !n.isDir() })
}

// treeID is the id of a directory, and of what is not there the empty tree's.
func treeID(n *node) object.ID {
	if n == nil {
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

// matchThree calls with what three directories have at each name. Of a name that a
// directory has twice the first counts, as it does for git.
func (r *Repository) matchThree(base, ours, theirs object.ID, call func(base, ours, theirs *node) error) error {
	var lists [3][]node
	for i, tree := range []object.ID{base, ours, theirs} {
		nodes, err := r.nodes(tree)
		if err != nil {
			return err
		}
		byName := func(a, b node) int { return strings.Compare(a.name, b.name) }
		if !slices.IsSortedFunc(nodes, byName) {
			slices.SortStableFunc(nodes, byName)
		}
		lists[i] = slices.CompactFunc(nodes, func(a, b node) bool { return a.name == b.name })
	}
	for {
		first := ""
		for _, list := range lists {
			if len(list) > 0 && (first == "" || list[0].name < first) {
				first = list[0].name
			}
		}
		if first == "" { // No entry has an empty name.
			return nil
		}
		var heads [3]*node
		for i, list := range lists {
			if len(list) > 0 && list[0].name == first {
				heads[i], lists[i] = &list[0], list[1:]
			}
		}
		if err := call(heads[0], heads[1], heads[2]); err != nil {
			return err
		}
	}
}
