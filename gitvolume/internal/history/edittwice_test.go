package history

import (
	"testing"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// TestEditTwice edits directories that have a name twice, as a server without
// receive.fsckObjects takes them: what is written has each name once, as made from nothing.
func TestEditTwice(t *testing.T) {
	t.Parallel()
	r, _ := newRepository(t)
	first, second, fresh := must(r.Blob([]byte("1"))), must(r.Blob([]byte("2"))), must(r.Blob([]byte("3")))
	below := must(r.Edit(object.ID{}, []Change{{"x", object.Regular, first}}))
	file := func(name string, blob object.ID) node { return newNode(name, object.Regular, blob) }
	want := func(changes ...Change) object.ID { return must(r.Edit(object.ID{}, changes)) }
	a, b := Change{"a", object.Regular, first}, Change{"b", object.Regular, first}
	changed := Change{"a", object.Regular, fresh}
	files := []node{file("a", first), file("a", second), file("b", first)}
	apart := []node{file("a", first), file("a.b", first), newNode("a", object.Directory, below)}
	for name, row := range map[string]struct {
		nodes  []node
		change Change
		want   object.ID
	}{
		"changed":              {files, changed, want(changed, b)},
		"removed":              {files, Change{Path: "a"}, want(b)},
		"another removed":      {files, Change{Path: "b"}, want(a)},
		"all removed":          {files[:2], Change{Path: "a"}, object.ID{}},
		"and a directory":      {apart, changed, want(changed, Change{"a.b", object.Regular, first})},
		"below the second":     {apart, Change{"a/x", 0, object.ID{}}, object.ID{}},
		"and a directory gone": {apart, Change{Path: "a"}, want(Change{"a.b", object.Regular, first})},
	} {
		tree := must(r.put(git.ObjectTree, treeContent(row.nodes)))
		if row.want.IsZero() && len(row.nodes) == 3 {
			row.want = tree // Nothing is changed: nothing is written.
		}
		if got, err := r.Edit(tree, []Change{row.change}); err != nil || got != row.want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, row.want)
		}
	}
}
