package history

import (
	"fmt"
	"slices"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

// cachedNodes bounds the entries that a treeCache holds: twice so many.
const cachedNodes = 1 << 16

// treeCache reads trees whose entries are in the order of their names. It remembers what
// it read last: a commit's tree is the next one's base, and what was merged is merged
// into next.
type treeCache struct {
	repository *Repository
	// Of two generations the older one is forgotten when the younger one is full.
	young, old map[object.ID][]node
	held       int // Entries in the younger one.
}

// nodes reads a tree. Of a name that it has twice the first counts, as it does for git.
// The entries are shared: they must not be changed.
func (c *treeCache) nodes(tree object.ID) ([]node, error) {
	nodes, found := c.young[tree]
	if found {
		return nodes, nil
	}
	if nodes, found = c.old[tree]; !found {
		var err error
		if nodes, err = c.repository.nodes(tree); err != nil {
			return nil, err
		}
		byName := func(a, b node) int { return strings.Compare(a.name, b.name) }
		if !slices.IsSortedFunc(nodes, byName) {
			slices.SortStableFunc(nodes, byName)
		}
		nodes = slices.CompactFunc(nodes, func(a, b node) bool { return a.name == b.name })
	}
	c.remember(tree, nodes)
	return nodes, nil
}

// remember keeps the entries of a tree, which are in the order of their names.
func (c *treeCache) remember(tree object.ID, nodes []node) {
	if tree.IsZero() || len(nodes) > cachedNodes {
		return
	}
	if c.young == nil || c.held+len(nodes) > cachedNodes {
		c.young, c.old, c.held = map[object.ID][]node{}, c.young, 0
	}
	c.young[tree] = nodes
	c.held += len(nodes)
}

// match calls with what three directories have at each name.
func (c *treeCache) match(base, ours, theirs object.ID, call func(base, ours, theirs *node) error) error {
	var lists [3][]node
	for i, tree := range []object.ID{base, ours, theirs} {
		nodes, err := c.nodes(tree)
		if err != nil {
			return fmt.Errorf("compare directories: %w", err)
		}
		lists[i] = nodes
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
		for i := range lists {
			if len(lists[i]) > 0 && lists[i][0].name == first {
				heads[i], lists[i] = &lists[i][0], lists[i][1:]
			}
		}
		if err := call(heads[0], heads[1], heads[2]); err != nil {
			return err
		}
	}
}
