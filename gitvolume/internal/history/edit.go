package history

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// ErrImpossible says that changes contradict each other, as a file at x and one at x/y.
var ErrImpossible = errors.New("the changes cannot all be made")

// Change is what becomes of one path of a tree. A Mode of 0 removes what is there, a
// file or a whole directory, and is no error if nothing is. Otherwise the path becomes
// the Blob (which a Submodule's need not be in the repository); with Directory it
// becomes the tree of that id, in place of all that was below.
//
// A change replaces whatever stands in its way: a directory by a file, and a file by
// the directory that holds the path.
type Change struct {
	Path string
	Mode object.Mode
	Blob object.ID
}

// step is a change on its way down: name and rest are what is left of its path.
type step struct {
	name, rest string
	change     *Change
}

// Edit makes the changes to a tree and gives the new one. The zero id is the empty
// tree, as a start and as a result. Only directories on changed paths are read and
// written; a directory that becomes empty disappears; entries that no change names
// stay byte for byte. Of a name that a changed directory has twice the first counts, as it
// does for git, and the others go. At most one change may name a path.
func (r *Repository) Edit(tree object.ID, changes []Change) (object.ID, error) {
	steps := make([]step, len(changes))
	for i := range changes {
		change := &changes[i]
		if err := r.checkChange(change); err != nil {
			return object.ID{}, fmt.Errorf("change %q: %w", change.Path, err)
		}
		name, rest, _ := strings.Cut(change.Path, "/")
		steps[i] = step{name: name, rest: rest, change: change}
	}
	if len(steps) == 0 {
		return tree, nil
	}
	id, _, err := r.edit(tree, steps)
	return id, err
}

// checkChange refuses what would make a tree that git refuses.
func (r *Repository) checkChange(change *Change) error {
	if err := checkDepth(change.Path); err != nil {
		return err
	}
	if change.Mode == 0 {
		// What has a name that git cannot hold may well be removed.
		return nil
	}
	if err := CheckKind(change.Path, change.Mode); err != nil {
		return err
	}
	switch change.Mode {
	case object.Regular, object.Executable, object.Symlink:
		return r.want(change.Blob, git.ObjectBlob)
	case object.Directory:
		return r.want(change.Blob, git.ObjectTree)
	case object.Submodule:
		if change.Blob.IsZero() {
			return fmt.Errorf("a submodule without a commit: %w", ErrImpossible)
		}
		return nil
	}
	return fmt.Errorf("git has no mode %s: %w", change.Mode, ErrImpossible)
}

// checkDepth refuses paths that no recursion should follow, and empty ones.
func checkDepth(path string) error {
	switch {
	case path == "":
		return fmt.Errorf("the path is empty: %w", ErrName)
	case strings.Count(path, "/") >= maxDepth:
		return fmt.Errorf("the path has more than %d names: %w", maxDepth, ErrTooLarge)
	}
	return nil
}

// edit makes the steps in one directory and tells how many entries it has then; an
// empty one is not written, and its id is zero.
func (r *Repository) edit(tree object.ID, steps []step) (object.ID, int, error) {
	nodes, err := r.nodes(tree)
	if err != nil {
		return object.ID{}, 0, err
	}
	nodes = firstOfEach(nodes)
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.rest, b.rest))
	})
	at := places(nodes, steps)
	changed, added, removed := false, []node(nil), 0
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n].name == steps[0].name {
			n++
		}
		group := steps[:n]
		steps = steps[n:]
		place, found := at[group[0].name]
		var old *node
		if found {
			old = &nodes[place]
		}
		replaced, keep, err := r.replace(old, group)
		if err != nil {
			return object.ID{}, 0, err
		}
		switch {
		case keep && found:
			changed = changed || string(old.raw) != string(replaced.raw)
			*old = replaced
		case keep:
			added = append(added, replaced)
		case found:
			old.raw = nil // Taken out below.
			removed++
		}
	}
	if !changed && len(added) == 0 && removed == 0 {
		return tree, len(nodes), nil
	}
	if removed > 0 {
		nodes = slices.DeleteFunc(nodes, func(n node) bool { return n.raw == nil })
	}
	if nodes = append(nodes, added...); len(nodes) == 0 {
		return object.ID{}, 0, nil
	}
	id, err := r.putTree(nodes)
	return id, len(nodes), err
}

// firstOfEach drops all but the first entry of a name. A stranger's tree may have one
// twice, also as a file and as a directory, which do not lie side by side.
func firstOfEach(nodes []node) []node {
	ascending := true
	for i := 1; i < len(nodes) && ascending; i++ {
		ascending = nodes[i-1].name < nodes[i].name
	}
	if ascending {
		return nodes // Nearly all are, and need no map.
	}
	seen := make(map[string]bool, len(nodes))
	return slices.DeleteFunc(nodes, func(n node) bool {
		again := seen[n.name]
		seen[n.name] = true
		return again
	})
}

// places finds the entries that the steps name.
func places(nodes []node, steps []step) map[string]int {
	at := make(map[string]int, len(steps))
	for _, s := range steps {
		at[s.name] = -1
	}
	for i, n := range nodes {
		if _, named := at[n.name]; named {
			at[n.name] = i
		}
	}
	for name, place := range at {
		if place < 0 {
			delete(at, name)
		}
	}
	return at
}

// replace makes the steps of one name: what stands there then, or keep is false.
func (r *Repository) replace(old *node, group []step) (replaced node, keep bool, err error) {
	name := group[0].name
	below := group
	var own *Change
	if group[0].rest == "" { // Sorted first.
		own, below = group[0].change, group[1:]
	}
	if len(below) > 0 && below[0].rest == "" {
		return node{}, false, fmt.Errorf("%q is named twice: %w", own.Path, ErrImpossible)
	}
	start := object.ID{}
	switch {
	case own != nil && own.Mode != 0:
		return r.become(name, own, below)
	case own == nil && old != nil && old.isDir():
		start = old.id
	}
	for i, s := range below {
		if start.IsZero() && s.change.Mode == 0 {
			continue
		}
		below[i].name, below[i].rest, _ = strings.Cut(s.rest, "/")
	}
	if start.IsZero() {
		// Below a file or nothing there is nothing to remove.
		below = slices.DeleteFunc(below, func(s step) bool { return s.change.Mode == 0 })
		if len(below) == 0 {
			if own != nil || old == nil {
				return node{}, false, nil
			}
			return *old, true, nil
		}
	}
	id, count, err := r.edit(start, below)
	if err != nil || count == 0 {
		return node{}, false, err
	}
	if old != nil && old.isDir() && old.id == id {
		return *old, true, nil
	}
	return newNode(name, object.Directory, id), true, nil
}

// become is what a name becomes that a change itself names.
func (r *Repository) become(name string, own *Change, below []step) (node, bool, error) {
	for _, s := range below {
		if s.change.Mode != 0 {
			return node{}, false, fmt.Errorf("%q is to hold %q: %w", own.Path, s.change.Path, ErrImpossible)
		}
	}
	if own.Mode == object.Directory {
		nodes, err := r.nodes(own.Blob)
		if err != nil || len(nodes) == 0 { // Git knows no empty directory.
			return node{}, false, err
		}
	}
	return newNode(name, own.Mode, own.Blob), true, nil
}
