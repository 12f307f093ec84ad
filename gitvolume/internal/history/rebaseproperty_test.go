package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

// TestRebaseIsGits rebases random histories both ways. Where both succeed the trees are
// equal and as many commits are left, and where git sees a conflict there is one. The
// driver has no conflicts beyond git's but those of far too many attributes.
func TestRebaseIsGits(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	cases, conflicts, unasked := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		base := someTree().Draw(t, "base")
		root := w.commit(t, base)
		onto := w.history(t, "upstream", base, root)
		tip := w.history(t, "own", base, root)
		want, said := w.reference(t, root, tip, onto)
		w.merges = 0
		got, err := w.repository.Rebase(t.Context(), w.replay(root, tip, onto))
		cases++
		if w.merges == 0 {
			unasked++
		}
		var conflict *Conflict
		switch {
		case err != nil && !errors.As(err, &conflict):
			t.Fatal(err)
		case conflict == nil && said != "":
			t.Fatalf("git sees a conflict and the driver none:\n%s\n%v", said, w.list(t, got.Tip))
		case conflict != nil && said == "":
			t.Fatalf("the driver sees a conflict and git none: %v\n%v", err, w.list(t, want))
		case conflict != nil:
			conflicts++
			if len(conflict.Paths) == 0 {
				t.Fatalf("the conflict names no path: %v", err)
			}
			return
		}
		if ours, git := w.list(t, got.Tip), w.list(t, want); !maps.Equal(ours, git) {
			t.Fatalf("the trees differ:\n%v\nwant\n%v", ours, git)
		}
		count := w.git(t, w.tree, "rev-list", "--count", onto.String()+".."+want.String())
		if fmt.Sprint(got.Replayed) != count {
			t.Fatalf("%d commits are left, %s by git", got.Replayed, count)
		}
	})
	t.Logf("%d histories: %d conflicts, %d without asking git", cases, conflicts, unasked)
	if cases >= 40 && (conflicts == 0 || conflicts == cases || unasked == 0) {
		t.Errorf("the histories are no test: of %d, %d conflict and %d did not need git", cases, conflicts, unasked)
	}
}

// names are few, so that changes meet, and stand below each other.
func names() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"a", "b", "c", "e", "f", "g", "d", "d/a", "d/b", "d/e/f", "d/e/g", "h/a", "h/b", "x", "x/y", "x/y/z"})
}

// lines is a content that git takes for the same after a small edit.
func lines(kind int) string {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "line %d of the text %d\n", i, kind)
	}
	return b.String()
}

func someTree() *rapid.Generator[leaves] {
	return rapid.Custom(func(t *rapid.T) leaves {
		tree := leaves{"keep": text("kept\n")}
		for range rapid.IntRange(3, 9).Draw(t, "files") {
			tree.put(names().Draw(t, "name"), text(lines(rapid.IntRange(0, 7).Draw(t, "text"))))
		}
		if rapid.IntRange(0, 5).Draw(t, "with attributes") == 0 {
			tree.put(".gitattributes", someAttributes(t))
		}
		return tree
	})
}

// put makes path a file, in place of what stood there, above it and below it.
func (f leaves) put(path string, is leaf) {
	for other := range f {
		if strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/") {
			delete(f, other)
		}
	}
	f[path] = is
}

func someAttributes(t *rapid.T) leaf {
	return text(rapid.SampledFrom([]string{
		"* merge=union\n", "a merge=union\n", "* binary\n", "d/** -merge\n", "b merge=unknown\n", "* merge\n",
	}).Draw(t, "attributes"))
}

// history makes one to three commits on a root.
func (w *workshop) history(t *rapid.T, who string, base leaves, root object.ID) object.ID {
	tree, tip := maps.Clone(base), root
	past := []leaves{base}
	for range rapid.IntRange(1, 3).Draw(t, "commits of "+who) {
		for range rapid.IntRange(1, 2).Draw(t, "changes") {
			tree = change(t, tree, past)
		}
		past = append(past, maps.Clone(tree))
		tip = w.commit(t, tree, tip)
	}
	return tip
}

// change makes one change to a tree.
func change(t *rapid.T, tree leaves, past []leaves) leaves {
	paths := slices.DeleteFunc(slices.Sorted(maps.Keys(tree)), func(path string) bool { return path == "keep" })
	if len(paths) == 0 {
		tree.put(names().Draw(t, "name"), text(lines(0)))
		return tree
	}
	path := rapid.SampledFrom(paths).Draw(t, "path")
	is := tree[path]
	edit := func() string {
		parts := strings.SplitAfter(is.content, "\n")
		at := rapid.SampledFrom([]int{0, 3, 6, 9, len(parts) - 2}).Draw(t, "line")
		parts[max(0, min(at, len(parts)-1))] = rapid.SampledFrom([]string{"one\n", "two\n", ""}).Draw(t, "new line")
		return strings.Join(parts, "")
	}
	switch rapid.SampledFrom([]string{"edit", "edit", "edit", "add", "add", "delete", "delete", "move", "move", "move and edit", "mode",
		"link", "module", "attributes", "attributes below", "copy", "back"}).Draw(t, "change") {
	case "edit":
		is.content = edit()
		if is.mode.IsFile() {
			tree[path] = is
		}
	case "add":
		tree.put(names().Draw(t, "name"), text(lines(rapid.IntRange(0, 9).Draw(t, "text"))))
	case "delete":
		delete(tree, path)
	case "move":
		delete(tree, path)
		tree.put(names().Draw(t, "to"), is)
	case "move and edit":
		delete(tree, path)
		if is.mode.IsFile() {
			is.content = edit()
		}
		tree.put(names().Draw(t, "to"), is)
	case "mode":
		if is.mode.IsFile() {
			is.mode ^= object.Regular ^ object.Executable
			tree[path] = is
		}
	case "link":
		tree.put(path, link(rapid.SampledFrom([]string{"keep", "elsewhere"}).Draw(t, "destination")))
	case "attributes":
		tree.put(".gitattributes", someAttributes(t))
	case "attributes below":
		tree.put("d/.gitattributes", someAttributes(t))
	case "copy":
		tree.put(names().Draw(t, "to"), is)
	case "back":
		return maps.Clone(rapid.SampledFrom(past).Draw(t, "past"))
	}
	return tree
}
