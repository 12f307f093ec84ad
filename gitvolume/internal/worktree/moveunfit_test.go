package worktree

import (
	"fmt"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// TestMoveOfLinksThatNoTreeCanHave has them come in place of what a tree has, and make way
// for it. They are not shown, and a memory that was made anew says the same as the move's.
func TestMoveOfLinksThatNoTreeCanHave(t *testing.T) {
	for name, link := range map[string]string{
		"empty@": "", "long@": strings.Repeat("x", maxLink+1), "nul@": "a\x00b", ".gitmodules@": "ok",
	} {
		t.Run(name, func(t *testing.T) {
			path := strings.TrimRight(name, "@")
			v := newVolume(t)
			bare, bad := v.treeOf(upstream{"ok": "1"}), v.plantLink(path, link)
			held := []upstream{{"ok": "1"}, {"ok": "1", path: "1"}}
			if path != ".gitmodules" {
				held = append(held, upstream{"ok": "1", name: "ok"}, upstream{"ok": "1", path + "/f": "1"})
			}
			v.move(bare)
			for _, want := range held {
				good := v.treeOf(want)
				for _, to := range []object.ID{good, bad, good} {
					moved := v.move(to)
					if len(moved.Conflicts)+len(moved.Late) > 0 || len(moved.Refused) > 0 != (to == bad) {
						t.Fatalf("%v: %+v", want, moved)
					}
					if to == bad {
						v.holds(upstream{"ok": "1"})
					} else {
						v.holds(want)
					}
					anew := v.request()
					edits := must(EditsOf(must(v.repo.Diff(object.ID{}, to)), v.repo))
					anew.Memory = (*Memory)(nil).With(edits)
					for _, request := range []Request{v.request(), anew} {
						if result := v.scan(request); len(result.Changes) > 0 {
							t.Errorf("%v: changes %q", want, changed(result))
						}
					}
				}
			}
		})
	}
}

// plantLink is a tree with the file ok and a link that no tree can have.
func (v *volume) plantLink(name, destination string) object.ID {
	v.t.Helper()
	blob := func(content string) string { return v.feed(content, "hash-object", "-w", "--stdin")[:40] }
	lines := fmt.Sprintf("120000 blob %s\t%s\x00100644 blob %s\tok\x00", blob(destination), name, blob("1"))
	return must(object.Parse(v.feed(lines, "mktree", "-z")[:40]))
}

// TestEditsOfWhatNoTreeCanHave is of paths alone.
func TestEditsOfWhatNoTreeCanHave(t *testing.T) {
	for _, path := range []string{"d/.GIT/x", strings.Repeat("n", maxName+1), strings.Repeat("n/", maxDepth) + "deep"} {
		edits := must(EditsOf([]history.Difference{{Path: path, To: history.Side{Mode: object.Regular, ID: object.ID{1}}}}, nil))
		if len(edits) != 1 || !edits[0].isZero() {
			t.Errorf("%.40q: %+v", path, edits)
		}
	}
}
