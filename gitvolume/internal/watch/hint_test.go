package watch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestPendingIsBounded(t *testing.T) {
	for name, add := range map[string]func(p *pending, i int){
		"paths":      func(p *pending, i int) { p.addPath(fmt.Sprint("p", i)) },
		"subtrees":   func(p *pending, i int) { p.addSubtree(fmt.Sprint("s", i)) },
		"long paths": func(p *pending, i int) { p.addPath(fmt.Sprint(i, strings.Repeat("/long", 800))) },
	} {
		t.Run(name, func(t *testing.T) {
			var p pending
			for i := range mostPaths + 1 {
				add(&p, i)
				if p.bytes > mostBytes || len(p.paths) > mostPaths || len(p.subtrees) > mostSubtrees {
					t.Fatalf("%d bytes, %d paths, %d subtrees", p.bytes, len(p.paths), len(p.subtrees))
				}
			}
			h := p.hint()
			if !h.Everything || len(h.Paths)+len(h.Subtrees) != 0 || p.paths != nil || p.subtrees != nil {
				t.Fatalf("%+v", h)
			}
		})
	}
}

func TestPendingPathCountsOnce(t *testing.T) {
	var p pending
	for range 10 * mostPaths {
		p.addPath("the same")
		p.addSubtree("the same")
	}
	if h := p.hint(); h.Everything || !slices.Equal(h.Subtrees, []string{"the same"}) || len(h.Paths) != 0 {
		t.Fatalf("%+v", h)
	}
}

func TestHintsAreSortedAndDistinct(t *testing.T) {
	var p pending
	for _, path := range []string{"z", "a/b", "a", "ab", "d/e/f", "d", ".", "d-"} {
		p.addPath(path)
	}
	for _, path := range []string{"d/e", "a", "a/b/c", "d/e/x/y", "ab/c"} {
		p.addSubtree(path)
	}
	h := p.hint()
	if want := []string{"a", "ab/c", "d/e"}; !slices.Equal(h.Subtrees, want) {
		t.Errorf("subtrees %q, want %q", h.Subtrees, want)
	}
	if want := []string{".", "ab", "d", "d-", "z"}; !slices.Equal(h.Paths, want) {
		t.Errorf("paths %q, want %q", h.Paths, want)
	}
	for path, want := range map[string]bool{
		"z": true, "a": true, "a/q/r": true, "ab": true, "ab/d": false, "d/e": true, "d/e/f": true, "d/f": false, "": false, ".": true, "zz": false,
	} {
		if got := p.covers(path); got != want {
			t.Errorf("%q is covered: %t, want %t", path, got, want)
		}
	}
	if h.Empty() || !(Hint{}).Empty() || (Hint{Gone: true}).Empty() {
		t.Error("what is empty and what not is mixed up")
	}
}

func TestRootAsSubtreeIsEverything(t *testing.T) {
	var p pending
	p.addPath("a")
	p.addSubtree(".")
	if h := p.hint(); !h.Everything || len(h.Paths) != 0 {
		t.Fatalf("%+v", h)
	}
}
