package history

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

// TestDiffAgainstGit compares two random trees.
func TestDiffAgainstGit(t *testing.T) {
	t.Parallel()
	r, peer := newRepository(t)
	names := rapid.SampledFrom([]string{"a", "a.b", "a0", "b", "\xff", "c\nd"})
	rapid.Check(t, func(t *rapid.T) {
		var trees [2]object.ID
		for i := range trees {
			changes := map[string]Change{}
			for range rapid.IntRange(0, 10).Draw(t, "files") {
				path := strings.Join(rapid.SliceOfN(names, 1, 3).Draw(t, "path"), "/")
				mode := rapid.SampledFrom([]object.Mode{object.Regular, object.Executable, object.Symlink, object.Submodule}).Draw(t, "mode")
				changes[path] = Change{path, mode, must(r.Blob([]byte{byte(rapid.IntRange(0, 2).Draw(t, "content"))}))}
			}
			dropImpossible(changes)
			if trees[i] = must(r.Edit(object.ID{}, slices.Collect(maps.Values(changes)))); trees[i].IsZero() {
				trees[i] = must(r.putTree(nil))
			}
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, d := range must(r.Diff(trees[0], trees[1])) {
			status := "M"
			switch {
			case d.From.Mode == 0:
				status = "A"
			case d.To.Mode == 0:
				status = "D"
			case d.From.Mode&0o170000 != d.To.Mode&0o170000:
				status = "T"
			}
			fmt.Fprintf(&got, ":%s %s %s %s %s\x00%s\x00", d.From.Mode, d.To.Mode, d.From.ID, d.To.ID, status, d.Path)
		}
		want := peer.run("diff-tree", "-r", "-z", "--no-renames", trees[0].String(), trees[1].String())
		if sorted(got.String()) != sorted(want) {
			t.Fatalf("got\n%q\ngit finds\n%q", got.String(), want)
		}
	})
}

// sorted has the differences in one order: git's is that of trees.
func sorted(raw string) string {
	lines := strings.Split(raw, "\x00:")
	for i := range lines {
		lines[i] = strings.Trim(lines[i], ":\x00")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\x00:")
}

// TestDiffBomb compares trees that stand for more paths than there are atoms.
func TestDiffBomb(t *testing.T) {
	r, _ := newRepository(t)
	blob := must(r.Blob([]byte("x")))
	for name, leaf := range map[string][]node{
		"files": {newNode("f", object.Regular, blob)}, "no files": nil,
	} {
		tree := must(r.putTree(leaf))
		for range 40 {
			var nodes []node
			for i := range 16 {
				nodes = append(nodes, newNode(fmt.Sprint(i), object.Directory, tree))
			}
			tree = must(r.putTree(nodes))
		}
		for what, most := range map[string]bounds{
			"paths": {1000, 1 << 40, 1 << 40, 1 << 40}, "directories": {1 << 40, 1 << 40, 1000, 1 << 40},
			"bytes": {1 << 40, 1000, 1 << 40, 1 << 40}, "held": {1 << 40, 1 << 40, 1 << 40, 20 << 10},
		} {
			if leaf == nil && (what == "paths" || what == "bytes") {
				continue // It has no path at all.
			}
			d := differ{repository: r, bounds: most}
			if err := d.trees(object.ID{}, tree, 0); !errors.Is(err, ErrTooLarge) || len(d.found) > 1000 || d.read > 2000 {
				t.Errorf("%s, %s: %d differences, %v", name, what, len(d.found), err)
			}
		}
	}
	deep := must(r.putTree([]node{newNode("f", object.Regular, blob)}))
	for range 5000 {
		deep = must(r.putTree([]node{newNode("d", object.Directory, deep)}))
	}
	if got, err := r.Diff(object.ID{}, deep); !errors.Is(err, ErrTooLarge) {
		t.Errorf("deep: %d differences, %v", len(got), err)
	}
	if got, err := r.Find(deep, strings.Repeat("d/", 5000)+"f"); !errors.Is(err, ErrTooLarge) {
		t.Errorf("deep: found %v, %v", got, err)
	}
}

// TestDiffLongPaths compares trees whose paths, few enough, have too many bytes.
func TestDiffLongPaths(t *testing.T) {
	r, _ := newRepository(t)
	var nodes []node
	for i := range 1000 {
		nodes = append(nodes, newNode(fmt.Sprint("f", i), object.Regular, must(r.Blob(nil))))
	}
	tree := must(r.putTree(nodes))
	for range 12 {
		nodes = nil
		for i := range 10 {
			nodes = append(nodes, newNode(strings.Repeat("n", 240)+fmt.Sprint(i), object.Directory, tree))
		}
		tree = must(r.putTree(nodes))
	}
	if got, err := r.Diff(object.ID{}, tree); !errors.Is(err, ErrTooLarge) || got != nil {
		t.Errorf("%d differences, %v", len(got), err)
	}
}

// TestDiffLongNames compares trees below each other of which each has a long name: the
// path must not be in memory once for each of them.
func TestDiffLongNames(t *testing.T) {
	r, _ := newRepository(t)
	tree := must(r.putTree([]node{newNode("f", object.Regular, must(r.Blob(nil)))}))
	for i := range 64 {
		tree = must(r.putTree([]node{newNode(strings.Repeat("n", 64<<10)+fmt.Sprint(i), object.Directory, tree)}))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := r.Diff(object.ID{}, tree)
	runtime.ReadMemStats(&after)
	// The objects themselves, a few times.
	if took := after.TotalAlloc - before.TotalAlloc; err != nil || len(got) != 1 || took > 100<<20 {
		t.Errorf("%d differences, %v, for %d bytes", len(got), err, took)
	}
}

// TestManyEntries reads a tree of which the memory would be many times its size.
func TestManyEntries(t *testing.T) {
	const most = 100
	one := append([]byte("0 a\x00"), make([]byte, object.IDSize)...)
	if nodes, err := parseEntries(bytes.Repeat(one, most), most); err != nil || len(nodes) != most {
		t.Errorf("%d entries, %v", len(nodes), err)
	}
	if nodes, err := parseEntries(bytes.Repeat(one, most+1), most); !errors.Is(err, ErrTooLarge) || nodes != nil {
		t.Errorf("%d entries, %v", len(nodes), err)
	}
}
