package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

func TestRebaseKeepsWhoAndWhy(t *testing.T) {
	w := newWorkshop(t)
	base := w.commit(t, leaves{"a": text("a")})
	onto := w.commit(t, leaves{"a": text("a"), "u": text("u")}, base)
	author := Signature{Name: "Zoë \"Z\" O'Neil", Email: "z@example.invalid", When: time.Unix(1_600_000_000, 0).In(time.FixedZone("", -5400))}
	message := "Update a\n\nM a\n\nVolume: ns/claim\n# no comment\n \n"
	own, err := w.repository.Describe(w.commit(t, leaves{"a": text("pod")}, base))
	if err != nil {
		t.Fatal(err)
	}
	tip, err := w.repository.Commit(Draft{Tree: own.Tree, Parents: own.Parents, Author: author, Committer: author, Message: message})
	if err != nil {
		t.Fatal(err)
	}
	replay := w.replay(base, tip, onto)
	got, err := w.repository.Rebase(t.Context(), replay)
	if err != nil {
		t.Fatal(err)
	}
	// Git reads what was written, so it is durable.
	format := w.git(t, w.tree, "log", "-1", "--format=%an|%ae|%ai|%cn|%ct|%P|%B", got.Tip.String())
	want := fmt.Sprintf("Zoë \"Z\" O'Neil|z@example.invalid|%s|c|%d|%s|%s",
		author.When.Format("2006-01-02 15:04:05 -0700"), replay.Committer.When.Unix(), onto, strings.TrimSpace(message))
	if format != want {
		t.Errorf("the commit is\n%s\nwant\n%s", format, want)
	}
	if refs := w.git(t, w.tree, "for-each-ref"); strings.Contains(refs, got.Tip.String()) {
		t.Errorf("a ref has moved: %s", refs)
	}
	again, err := w.repository.Rebase(t.Context(), replay)
	if err != nil || again != got {
		t.Errorf("the same rebase gives %+v, %v, and gave %+v", again, err, got)
	}
}

func TestRebaseOfWhatIsPartlyThere(t *testing.T) {
	w := newWorkshop(t)
	base := w.commit(t, leaves{"a": text("a")})
	first := w.commit(t, leaves{"a": text("one")}, base)
	second := w.commit(t, leaves{"a": text("one"), "b": text("two")}, first)
	// Others went on from what was pushed, on the same line.
	on := func(parent object.ID, tree leaves) object.ID { return w.commit(t, tree, parent) }
	other := w.commit(t, leaves{"a": text("a"), "o": text("o")}, base)
	for name, row := range map[string]struct {
		onto          object.ID
		want          leaves
		left, dropped int
		kept          object.ID
	}{
		"nothing moved":            {base, leaves{"a": text("one"), "b": text("two")}, 2, 0, second},
		"the first was pushed":     {on(first, leaves{"a": text("theirs")}), leaves{"a": text("theirs"), "b": text("two")}, 1, 0, object.ID{}},
		"only the first":           {first, leaves{"a": text("one"), "b": text("two")}, 1, 0, second},
		"both were pushed":         {on(second, leaves{"a": text("theirs")}), leaves{"a": text("theirs")}, 0, 0, object.ID{}},
		"both, by a merge":         {w.commit(t, leaves{"a": text("late"), "o": text("o")}, other, second), leaves{"a": text("late"), "o": text("o")}, 0, 0, object.ID{}},
		"the tip itself":           {second, leaves{"a": text("one"), "b": text("two")}, 0, 0, second},
		"forced to something else": {w.commit(t, leaves{"a": text("a"), "z": text("z")}), leaves{"a": text("one"), "b": text("two"), "z": text("z")}, 2, 0, object.ID{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.repository.Rebase(t.Context(), w.replay(base, second, row.onto))
			if err != nil || got.Replayed != row.left || got.Dropped != row.dropped {
				t.Fatalf("%+v, %v, want %d left and %d dropped", got, err, row.left, row.dropped)
			}
			if tree := w.list(t, got.Tip); !maps.Equal(tree, row.want) {
				t.Errorf("the tree is %v, want %v", tree, row.want)
			}
			if !row.kept.IsZero() && got.Tip != row.kept {
				t.Errorf("the tip is %s: the commit %s was made anew", got.Tip, row.kept)
			}
		})
	}
}

func TestRebaseOfAWholeHistory(t *testing.T) {
	w := newWorkshop(t)
	// Two nodes began a branch in an empty remote at once.
	onto := w.commit(t, leaves{"theirs": text("t")})
	tip := w.commit(t, leaves{"a": text("aa")}, w.commit(t, leaves{"a": text("a")}))
	got, err := w.repository.Rebase(t.Context(), w.replay(object.ID{}, tip, onto))
	if err != nil || got.Replayed != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if tree := w.list(t, got.Tip); !maps.Equal(tree, leaves{"theirs": text("t"), "a": text("aa")}) {
		t.Errorf("the tree is %v", tree)
	}
}

func TestRebaseKeepsACommitThatWasEmpty(t *testing.T) {
	w := newWorkshop(t)
	base := w.commit(t, leaves{"a": text("a")})
	onto := w.commit(t, leaves{"a": text("a"), "u": text("u")}, base)
	tip := w.commit(t, leaves{"a": text("a")}, base)
	git, said := w.reference(t, base, tip, onto)
	got, err := w.repository.Rebase(t.Context(), w.replay(base, tip, onto))
	if err != nil || said != "" || got.Replayed != 1 {
		t.Fatalf("%+v, %v; git says %q", got, err, said)
	}
	if count := w.git(t, w.tree, "rev-list", "--count", onto.String()+".."+git.String()); count != "1" {
		t.Errorf("git keeps %s of it", count)
	}
}

// brokenMerger is git that cannot be run, or tells nothing.
type brokenMerger struct {
	tree object.ID
	err  error
}

func (b brokenMerger) MergeTrees(context.Context, object.ID, object.ID, map[string][]byte) (object.ID, []string, error) {
	return b.tree, nil, b.err
}

func TestRebaseFails(t *testing.T) {
	w := newWorkshop(t)
	base := w.commit(t, leaves{"a": text("a")})
	onto, tip := w.commit(t, leaves{"a": text("theirs")}, base), w.commit(t, leaves{"a": text("ours")}, base)
	var conflict *Conflict
	_, err := w.repository.Rebase(t.Context(), w.replay(base, tip, onto))
	if !errors.As(err, &conflict) || conflict.Commit != tip || len(conflict.Paths) != 1 || conflict.Paths[0] != "a" {
		t.Errorf("the error is %v, want a conflict of %s at a", err, tip)
	}
	for _, row := range []struct{ paths, says string }{
		{"a", `conflicts at "a"`}, {"a b c", `conflicts at ["a" "b" "c"]`}, {"a b c d", `conflicts at 4 paths, such as ["a" "b" "c"]`},
	} {
		if said := (&Conflict{Commit: tip, Paths: strings.Fields(row.paths)}).Error(); !strings.HasSuffix(said, row.says) {
			t.Errorf("it says %q, want %q", said, row.says)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.repository.Rebase(gone, w.replay(base, tip, onto)); !errors.Is(err, context.Canceled) {
		t.Errorf("a rebase that is not wanted any more gives %v", err)
	}
	replay := w.replay(base, tip, onto)
	cause := errors.New("no git")
	for name, merger := range map[string]Merger{"no git": brokenMerger{err: cause}, "no result": brokenMerger{}} {
		replay.Merger = merger
		if _, err := w.repository.Rebase(t.Context(), replay); err == nil || errors.As(err, &conflict) {
			t.Errorf("%s: the error is %v, want one that is no conflict", name, err)
		}
	}
	other := w.commit(t, leaves{"z": text("z")})
	if _, err := w.repository.Rebase(t.Context(), w.replay(other, tip, onto)); !errors.Is(err, ErrUnrelated) {
		t.Errorf("a base that the tip was not made on gives %v", err)
	}
}

// TestRebaseWithFarTooManyAttributes: the volume goes on at its side branch, as after
// any conflict, and does not fail for ever.
func TestRebaseWithFarTooManyAttributes(t *testing.T) {
	w := newWorkshop(t)
	large := text(strings.Repeat("# nothing\n", maxMergeAttributes/10+1))
	side := func(a string) leaves { return leaves{"a": text(a), ".gitattributes": large} }
	base := w.commit(t, side("a"))
	onto, tip := w.commit(t, side("theirs"), base), w.commit(t, side("ours"), base)
	_, err := w.repository.Rebase(t.Context(), w.replay(base, tip, onto))
	var conflict *Conflict
	if !errors.As(err, &conflict) || conflict.Commit != tip || len(conflict.Paths) != 1 || conflict.Paths[0] != ".gitattributes" || w.merges != 0 {
		t.Errorf("the error is %v, want a conflict at the attributes; git was asked %d times", err, w.merges)
	}
	// Where nothing meets, attributes do not matter.
	apart := side("a")
	apart["b"] = text("b")
	if got, err := w.repository.Rebase(t.Context(), w.replay(base, w.commit(t, apart, base), onto)); err != nil || got.Replayed != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRebaseWithManySmallAttributes: each takes a page, however little it holds.
func TestRebaseWithManySmallAttributes(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	side := func(a string, count int) leaves {
		all := leaves{}
		for i := range count {
			all[fmt.Sprintf("d%04d/.gitattributes", i)], all[fmt.Sprintf("d%04d/f", i)] = text("#"), text(a)
		}
		all["d0000/a"] = text(a)
		return all
	}
	const most = maxMergeAttributes / attributesPage
	for count, isTooMuch := range map[int]bool{most: false, most + 1: true} {
		base := w.commit(t, side("a", count))
		onto, tip := w.commit(t, side("theirs", count), base), w.commit(t, side("ours", count), base)
		before := w.merges
		_, err := w.repository.Rebase(t.Context(), w.replay(base, tip, onto))
		var conflict *Conflict
		if !errors.As(err, &conflict) || (w.merges == before) != isTooMuch {
			t.Errorf("%d: the error is %v; git was asked %d times", count, err, w.merges-before)
		}
	}
}

// TestRebaseWithAttributesOutOfReach: neither a path that no disk can hold nor a tree that
// stands for more directories than could be looked into lets a volume fail for ever.
func TestRebaseWithAttributesOutOfReach(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	r := w.repository
	bomb := must(r.putTree(nil))
	for i := range 8 {
		nodes := []node{newNode("x", object.Regular, must(r.Blob(fmt.Append(nil, i))))}
		for i := range 10 {
			nodes = append(nodes, newNode(fmt.Sprint(i), object.Directory, bomb))
		}
		bomb = must(r.putTree(nodes))
	}
	for name, change := range map[string]Change{
		"long": file(t, r, "long/"+strings.Repeat(strings.Repeat("x", 200)+"/", 20)+attributesFile, "* -merge\n"),
		"bomb": {Path: "bomb", Mode: object.Directory, Blob: bomb},
	} {
		commitOf := func(content string, more []Change, parents ...object.ID) object.ID {
			return commit(t, r, must(r.Edit(object.ID{}, append(more, file(t, r, "a", content)))), parents...)
		}
		base := commitOf(lines(1), nil)
		onto := commitOf(lines(1)+"theirs\n", []Change{change}, base)
		tip := commitOf("ours\n"+lines(1), nil, base)
		_, err := r.Rebase(t.Context(), w.replay(base, tip, onto))
		var conflict *Conflict
		if !errors.As(err, &conflict) || conflict.Commit != tip || len(conflict.Paths) != 1 || conflict.Paths[0] != name {
			t.Errorf("%s: the error is %v, want a conflict at it", name, err)
		}
	}
}

// TestRebaseLongHistory replays what a node did in weeks without its remote.
func TestRebaseLongHistory(t *testing.T) {
	t.Parallel()
	commits := 1000
	if raced {
		commits = 300
	}
	w := newWorkshop(t)
	tree := leaves{}
	for i := range 2000 {
		tree[fmt.Sprintf("d%02d/f%02d", i%40, i/40)] = text("x")
	}
	base := w.commit(t, tree)
	tip, onto := base, base
	edit := func(parent object.ID, path string, i int) object.ID {
		blob, err := w.repository.Blob([]byte(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		from, err := w.repository.CommitTree(parent)
		if err != nil {
			t.Fatal(err)
		}
		to, err := w.repository.Edit(from, []Change{{Path: path, Mode: object.Regular, Blob: blob}})
		if err != nil {
			t.Fatal(err)
		}
		return w.commitTree(t, to, parent)
	}
	for i := range commits {
		tip = edit(tip, fmt.Sprintf("d%02d/f00", i%20), i)
	}
	for i := range 20 {
		onto = edit(onto, fmt.Sprintf("d%02d/f01", i+10), i)
	}
	if err := w.repository.Flush(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	got, err := w.repository.Rebase(t.Context(), w.replay(base, tip, onto))
	if err != nil || got.Replayed != commits || w.merges != 0 {
		t.Fatalf("%+v, %v, git was asked %d times", got, err, w.merges)
	}
	t.Logf("%d commits in %s", commits, time.Since(start))
	for path, want := range map[string]string{"d19/f00": fmt.Sprint(commits - 1), "d10/f00": fmt.Sprint(commits - 10), "d29/f01": "19", "d39/f49": "x"} {
		if got := w.list(t, got.Tip)[path].content; got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// TestTreeCacheIsBounded reads more trees than the memory of a rebase may grow by.
func TestTreeCacheIsBounded(t *testing.T) {
	cache := treeCache{}
	for i := range 1000 {
		cache.remember(object.ID{1, byte(i), byte(i >> 8)}, make([]node, 1000))
		held := 0
		for _, generation := range []map[object.ID][]node{cache.young, cache.old} {
			for _, nodes := range generation {
				held += len(nodes)
			}
		}
		if held > 2*cachedNodes {
			t.Fatalf("after %d trees it holds %d entries", i+1, held)
		}
		if _, err := cache.nodes(object.ID{1, byte(i), byte(i >> 8)}); err != nil {
			t.Fatal(err)
		}
	}
	cache.remember(object.ID{2}, make([]node, cachedNodes+1))
	if len(cache.young[object.ID{2}]) > 0 {
		t.Error("a directory that is too large is kept")
	}
}
