package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// TestClear ends a move at each step and loses its trees then: nothing unfinished is left
// in the tree, and nothing that the application wrote is lost.
func TestClear(t *testing.T) {
	onTmpfs(t)
	for _, kind := range changeKinds() {
		for _, name := range []string{"", "writes", "replaces", "adds"} {
			for _, crash := range []string{"stage", "put", "look", "remove", "back"} {
				for _, lost := range []string{"neither side", "the commit after", "both sides"} {
					if lost == "both sides" && name == "" {
						continue // What nobody knows is kept.
					}
					t.Run(strings.Join([]string{kind.name, name, crash, lost}, "/"), func(t *testing.T) {
						i := interrupt(t, kind, "put", name)
						i.crash(crash)
						i.clear(lost)
						i.noneUnfinished()
						found := false
						for path, content := range i.onDisk() {
							found = found || content == "mine"
							if name == "" && strings.Contains(path, ownPrefix) && lost == "neither side" {
								t.Errorf("kept is %q", path)
							}
						}
						if i.wrote && !found {
							t.Errorf("what the application wrote is lost: %q", i.onDisk())
						}
					})
				}
			}
		}
	}
}

// clear clears the move away, with as much of its trees as is not lost.
func (i *interrupted) clear(lost string) {
	i.t.Helper()
	intent := i.store.held
	known := must(i.mover(i.store).Source.Diff(intent.From, intent.To))
	for at := range known {
		if lost == "the commit after" && known[at].To.Mode.IsFile() {
			known[at].To.ID = object.ID{1}
		}
	}
	if lost == "both sides" {
		known = nil
	}
	_, err := i.mover(i.store).Clear(i.t.Context(), intent, known)
	i.do(err)
}

// TestClearTellsASuccessor: of a successor that no commit knows any more it is enough that
// what it was to replace stands there yet.
func TestClearTellsASuccessor(t *testing.T) {
	i := interrupt(t, changeKinds()[0], "put", "")
	i.crash("put")
	i.clear("the commit after")
	if got := i.onDisk(); got["d/f"] != "1" || len(got) != 2 {
		t.Errorf("the tree has %q", got)
	}
}

// TestClearPutsBack what the application wrote and the move took out.
func TestClearPutsBack(t *testing.T) {
	i := interrupt(t, changeKinds()[0], "put", "replaces")
	i.crash("look")
	i.clear("neither side")
	if got := string(must(os.ReadFile(filepath.Join(i.dir, "d/f")))); got != "mine" {
		t.Errorf("in its place is %q", got)
	}
}
