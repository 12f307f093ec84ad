package history

import (
	"fmt"
	"slices"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

// Bounds of a comparison: a few small trees that name each other can stand for more paths
// than a disk could hold, and one with long names for longer ones than memory could.
const (
	maxDifferences = 4 << 20
	maxPathBytes   = 128 << 20 // Of all paths found together.
	maxDirectories = 1 << 20   // Pairs of directories that are read.
	maxHeld        = 512 << 20 // Memory of the directories on the way to a path, in bytes.
)

// Side is what one tree has at a path; the zero Side is nothing. It is never a
// directory.
type Side struct {
	Mode object.Mode
	ID   object.ID
}

// Difference is a path where two trees differ.
type Difference struct {
	Path     string
	From, To Side
}

// Diff is where two trees differ, path by path and without renames, sorted by path. A
// file that becomes a directory is the file gone and the directory's files new. Equal
// directories are not read. The zero id is the empty tree. More than can be held in memory
// is ErrTooLarge.
func (r *Repository) Diff(from, to object.ID) ([]Difference, error) {
	d := differ{repository: r, bounds: bounds{maxDifferences, maxPathBytes, maxDirectories, maxHeld}}
	if err := d.trees(from, to, 0); err != nil {
		return nil, fmt.Errorf("compare the trees %s and %s: %w", from, to, err)
	}
	slices.SortStableFunc(d.found, func(a, b Difference) int { return strings.Compare(a.Path, b.Path) })
	return d.found, nil
}

// differ collects differences.
type differ struct {
	repository *Repository
	found      []Difference
	path       []byte // Of what is looked at. One for all: a name may have any length.
	bytes      int    // Of the paths found.
	read       int    // Directories read.
	held       int    // Bytes of those that are looked into.
	bounds     bounds
}

// bounds are the most that a differ finds, reads and holds.
type bounds struct{ found, bytes, read, held int }

// trees compares two directories at the path.
func (d *differ) trees(from, to object.ID, depth int) error {
	if from == to {
		return nil
	}
	if d.read++; depth > maxDepth || d.read > d.bounds.read {
		return fmt.Errorf("compare %d directories, of which one lies %d deep: %w", d.read, depth, ErrTooLarge)
	}
	before, err := d.repository.nodes(from)
	if err != nil {
		return err
	}
	after, err := d.repository.nodes(to)
	if err != nil {
		return err
	}
	held := memoryOf(before) + memoryOf(after)
	defer func() { d.held -= held }()
	if d.held += held; d.held > d.bounds.held {
		return fmt.Errorf("look into %d directories below each other, of %d bytes: %w", depth+1, d.held, ErrTooLarge)
	}
	return matchNodes(before, after, func(a, b *node) error { return d.nodes(a, b, depth) })
}

// nodes compares what two directories have at one name, either of which may be nil.
func (d *differ) nodes(a, b *node, depth int) error {
	name := ""
	var from, to Side
	var below, belowTo object.ID
	for _, side := range []struct {
		n    *node
		side *Side
		tree *object.ID
	}{{a, &from, &below}, {b, &to, &belowTo}} {
		if side.n == nil {
			continue
		}
		name = side.n.name
		if entry := side.n.entry(); side.n.isDir() {
			*side.tree = entry.ID
		} else {
			*side.side = Side{Mode: entry.Mode, ID: entry.ID}
		}
	}
	above := len(d.path)
	defer func() { d.path = d.path[:above] }()
	d.path = append(d.path, name...)
	if from != to {
		d.bytes += len(d.path)
		if len(d.found) >= d.bounds.found || d.bytes > d.bounds.bytes {
			return fmt.Errorf("list %d differences, with paths of %d bytes: %w", len(d.found)+1, d.bytes, ErrTooLarge)
		}
		d.found = append(d.found, Difference{Path: string(d.path), From: from, To: to})
	}
	if below == belowTo {
		return nil
	}
	if d.path = append(d.path, '/'); len(d.path) > d.bounds.bytes {
		return fmt.Errorf("compare directories with a path of %d bytes: %w", len(d.path), ErrTooLarge)
	}
	return d.trees(below, belowTo, depth+1)
}

// matchNodes calls with the entries of two directories, name by name. Of a name that
// a directory has twice the first counts, as it does for git.
func matchNodes(before, after []node, call func(a, b *node) error) error {
	// Strangers' trees need not be sorted; those that are not are sorted here by name
	// alone, so that a file and a directory of one name meet.
	byName := func(a, b node) int { return strings.Compare(a.name, b.name) }
	slices.SortStableFunc(before, byName)
	slices.SortStableFunc(after, byName)
	same := func(a, b node) bool { return a.name == b.name }
	before, after = slices.CompactFunc(before, same), slices.CompactFunc(after, same)
	for len(before) > 0 || len(after) > 0 {
		var a, b *node
		var order int
		switch {
		case len(before) == 0:
			order = 1
		case len(after) == 0:
			order = -1
		default:
			order = byName(before[0], after[0])
		}
		if order <= 0 {
			a, before = &before[0], before[1:]
		}
		if order >= 0 {
			b, after = &after[0], after[1:]
		}
		if err := call(a, b); err != nil {
			return err
		}
	}
	return nil
}
