package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

// TestTreeDelta writes directories as deltas of each other, which git and libgit2 have to
// read as they were.
func TestTreeDelta(t *testing.T) {
	t.Parallel()
	r, peer := newRepository(t)
	blob, other := must(r.Blob([]byte("one"))), must(r.Blob([]byte("other")))
	below := must(r.Edit(object.ID{}, []Change{{"x", object.Regular, blob}}))
	want := map[object.ID]string{}
	deltas := 0
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c.]{1,3}[d-e]{1,200}`), 1, 40, rapid.ID).Draw(t, "names")
		draw := func() []node {
			var nodes []node
			for _, name := range names {
				switch rapid.IntRange(0, 12).Draw(t, name) {
				case 0:
				case 1:
					nodes = append(nodes, newNode(name, object.Regular, other))
				case 2:
					nodes = append(nodes, newNode(name, object.Directory, below))
				default:
					nodes = append(nodes, newNode(name, object.Regular, blob))
				}
			}
			return nodes
		}
		var tree object.ID
		var nodes []node
		for range rapid.IntRange(2, 5).Draw(t, "trees") {
			next := draw()
			tree, nodes = must(r.putTreeOver(next, tree, nodes)), next
			want[tree] = string(treeContent(inTreeOrder(nodes)))
			if r.pending.objects[tree].deltas > 0 {
				deltas++
			}
		}
	})
	if deltas == 0 {
		t.Error("none was a delta")
	}
	checkTrees(t, r, want)
	peer.fsck()
}

// checkTrees reads trees, of which the first that is a pending delta flushes all.
func checkTrees(t *testing.T, r *Repository, want map[object.ID]string) {
	t.Helper()
	for id, content := range want {
		if got := must(r.nodes(id)); string(treeContent(got)) != content {
			t.Errorf("%s is read as %q, was written as %q", id, treeContent(got), content)
		}
	}
	if left := len(r.pending.objects); left > 0 {
		t.Errorf("%d objects are still pending", left)
	}
}

// TestLongTreeDelta has copies of more than one command can have, and more deltas of
// deltas than there may be.
func TestLongTreeDelta(t *testing.T) {
	r, peer := newRepository(t)
	blob := must(r.Blob([]byte("one")))
	var nodes []node
	for i := range 1500 {
		nodes = append(nodes, newNode(fmt.Sprintf("%05d-%s", i, strings.Repeat("n", i%40)), object.Regular, blob))
	}
	tree := must(r.putTree(nodes))
	want := map[object.ID]string{tree: string(treeContent(nodes))}
	longest := 0
	for n := range 2*maxDeltas + 3 {
		next := slices.Clone(nodes)
		next[n*14] = newNode(next[n*14].name, object.Executable, blob)
		tree, nodes = must(r.putTreeOver(next, tree, nodes)), next
		want[tree] = string(treeContent(nodes))
		longest = max(longest, r.pending.objects[tree].deltas)
	}
	if size := len(r.pending.pack); longest != maxDeltas || size > 4*len(want[tree]) {
		t.Errorf("%d deltas follow each other, %d trees take %d bytes, one has %d", longest, len(want), size, len(want[tree]))
	}
	checkTrees(t, r, want)
	if err := r.SetRef("refs/heads/main", commit(t, r, tree), object.ID{}); err != nil {
		t.Fatal(err)
	}
	peer.fsck()
}
