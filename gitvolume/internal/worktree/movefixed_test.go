package worktree

import (
	"maps"
	"slices"
	"testing"

	"liken.sh/csicommon/csitest/inodeflags"
	"liken.sh/gitvolume/internal/metadata"
)

// What the application made immutable, or to be added to alone, is as if it had written it: a
// move that cannot be leaves the tree as it is, and no intent.
func TestMoveMeetsWhatIsImmutable(t *testing.T) {
	for _, row := range []struct {
		name      string
		from, to  upstream
		fixed     string
		flag      int
		conflicts []string
	}{
		{"a file that upstream changes", upstream{"f": "1", "g": "1"}, upstream{"f": "2", "g": "2"}, "f", inodeflags.Immutable, []string{"f"}},
		{"a file to be added to", upstream{"f": "1", "g": "1"}, upstream{"f": "2", "g": "2"}, "f", inodeflags.AppendOnly, []string{"f"}},
		{"a file that upstream removes", upstream{"f": "1", "g": "1"}, upstream{"g": "2"}, "f", inodeflags.Immutable, []string{"f"}},
		{"a file that becomes a directory", upstream{"f": "1"}, upstream{"f/x": "2"}, "f", inodeflags.Immutable, []string{"f"}},
		{"a directory that gets a file", upstream{"d/f": "1", "g": "1"}, upstream{"d/f": "1", "d/n": "1", "g": "2"}, "d", inodeflags.Immutable, []string{"d/n"}},
		{"a directory that gets a directory", upstream{"d/f": "1"}, upstream{"d/f": "1", "d/n/x": "1"}, "d", inodeflags.Immutable, []string{"d/n"}},
		{"a directory in which a file changes", upstream{"d/f": "1"}, upstream{"d/f": "2"}, "d", inodeflags.AppendOnly, []string{"d/f"}},
		{"a directory that upstream removes", upstream{"d/f": "1"}, upstream{}, "d", inodeflags.Immutable, []string{"d/f"}},
		{"a directory that becomes a file", upstream{"d/f": "1"}, upstream{"d": "2"}, "d", inodeflags.Immutable, []string{"d"}},
		{"a file in a directory that becomes a file", upstream{"d/e/f": "1", "d/g": "1"}, upstream{"d": "2"}, "d/e/f", inodeflags.Immutable, []string{"d"}},
		{"a directory above one that changes", upstream{"d/e/f": "1"}, upstream{"d/e/f": "2"}, "d", inodeflags.Immutable, nil},
		{"a file that upstream leaves", upstream{"f": "1", "g": "1"}, upstream{"f": "1", "g": "2"}, "f", inodeflags.Immutable, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			v := newVolume(t)
			v.start(row.from)
			inodeflags.Fix(t, v.at(row.fixed), row.flag)
			before := v.onDisk()
			moved := v.move(v.treeOf(row.to))
			if !slices.Equal(moved.Conflicts, row.conflicts) || len(moved.Late) > 0 {
				t.Fatalf("conflicts %q, late %q", moved.Conflicts, moved.Late)
			}
			if len(row.conflicts) == 0 {
				v.holds(row.to)
			} else if after := v.onDisk(); !maps.Equal(before, after) {
				t.Errorf("the tree was %q and is %q", before, after)
			}
			v.wantsChanges(v.commit())
		})
	}
}

// What becomes immutable when it is about to be replaced stays, and the move ends.
func TestMoveMeetsWhatBecomesImmutable(t *testing.T) {
	for name, to := range map[string]upstream{"changed": {"f": "2", "g": "2"}, "removed": {"g": "2"}} {
		t.Run(name, func(t *testing.T) {
			v := newVolume(t)
			v.start(upstream{"f": "1", "g": "1"})
			inodeflags.Fix(t, v.at("f"), 0)
			store := &intents{}
			tree := v.treeOf(to)
			mv := must(v.mover(store).begin(t.Context(), newIntent(v.root, tree)))
			defer func() { mv.cursor.Close() }()
			mv.before = func(step, path string) {
				if step == "put" && path == "f" {
					v.do(inodeflags.Set(v.at("f"), inodeflags.Immutable))
				}
			}
			moved, err := mv.move()
			v.do(err)
			if !slices.Equal(moved.Late, []string{"f"}) || store.held.Token != "" {
				t.Errorf("late %q, the intent is %v", moved.Late, store.held)
			}
			v.noneUnfinished()
			v.holds(upstream{"f": "1", "g": "2"})
			v.root, v.memory = tree, moved.Memory
			v.wantsChanges(v.commit(), "f")
		})
	}
}

// A record names an empty directory in one that is immutable.
func TestReplayInWhatIsImmutable(t *testing.T) {
	v := newVolume(t)
	v.start(upstream{"d/f": "1"})
	v.setEntry("d/e", metadata.Entry{Kind: metadata.Empty})
	inodeflags.Fix(t, v.at("d"), inodeflags.Immutable)
	_, err := v.tree.ReplayAll(t.Context(), v.replayOf())
	v.do(err)
	v.holds(upstream{"d/f": "1"})
}
