package watch

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A moved directory's watches move with it, and notify tells of them by paths that
// were. Each row is followed by a change of d/e/f or what it became.
func TestMovedDirectories(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, root string)
		write  string
	}{
		"renamed":                       {moves("d", "x"), "x/e/f"},
		"renamed and back":              {moves("d", "x", "x", "d"), "d/e/f"},
		"renamed, a new in its place":   {moves("d", "x", "+d/e", ""), "d/e/f"},
		"swapped":                       {moves("d", "old", "new", "d"), "d/e/f"},
		"swapped twice":                 {moves("d", "old", "new", "d", "old", "new", "d", "old", "new", "d"), "d/e/f"},
		"moved down":                    {moves("d", "new/d"), "new/d/e/f"},
		"moved out":                     {moves("d", "../out"), "new/e/f"},
		"moved out, a new in its place": {moves("d", "../out", "+d/e", ""), "d/e/f"},
		"moved out and in":              {moves("d", "../out", "../out", "x"), "x/e/f"},
		"moved in":                      {moves("../other", "x"), "x/e/f"},
		"moved in over an empty one":    {moves("+x", "", "../other", "x"), "x/e/f"},
		"renamed over an empty one":     {moves("+x", "", "d", "x"), "x/e/f"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "root")
			for _, dir := range []string{"d/e", "new/e", "../other/e"} {
				if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			o := start(t, New(), root)
			defer o.w.Stop()
			o.calm()
			test.change(t, root)
			for round := 0; ; round++ {
				o.calm()
				write(t, filepath.Join(root, test.write), strconv.Itoa(round))
				paths, _, everything := o.heard(t)
				if !everything && slices.Equal(paths, []string{test.write}) {
					return
				}
				if round == 5 { // Some time the last event of the move itself has come.
					t.Fatalf("a write to %q announced %q; last hints %s", test.write, paths, o.last())
				}
			}
		})
	}
}

// moves are renames from a path to the next; +path is made, with its parents.
func moves(paths ...string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		t.Helper()
		for i := 0; i < len(paths); i += 2 {
			from := paths[i]
			if from[0] == '+' {
				if err := os.MkdirAll(filepath.Join(root, from[1:]), 0o755); err != nil {
					t.Fatal(err)
				}
				continue
			}
			// Unlike os.Rename it puts a directory over an empty one.
			if err := unix.Rename(filepath.Join(root, from), filepath.Join(root, paths[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A directory whose watch comes after the owner looked is looked at once more: what
// was written in between has no event.
func TestLateWatch(t *testing.T) {
	root := t.TempDir()
	o := start(t, New(), root)
	defer o.w.Stop()
	o.calm()
	if err := os.Mkdir(filepath.Join(root, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.until("d", func(h Hint) bool { return slices.Contains(h.Subtrees, "d") })
	h := Hint{Subtrees: []string{"d"}} // As one taken before there was any watch.
	inode, err := inodeOf(filepath.Join(root, "d"))
	if err != nil {
		t.Fatal(err)
	}
	o.calm()
	missing := o.w.Check(h, func(yield func(string, Inode) bool) { yield("d", inode) })
	if missing != 0 {
		t.Fatalf("%d watches are missing", missing)
	}
	select {
	case <-o.w.C():
	case <-time.After(patient):
		t.Fatal("no hint")
	}
	if h := o.w.Take(); !slices.Equal(h.Subtrees, []string{"d"}) {
		t.Fatalf("a late watch leads to %+v", h)
	}
}

// What is gone when it is checked lacks no watch.
func TestCheckOfTheGone(t *testing.T) {
	root := t.TempDir()
	o := start(t, New(), root)
	defer o.w.Stop()
	o.calm()
	gone := func(yield func(string, Inode) bool) { _ = yield("gone", Inode{1, 1}) && yield("d/gone", Inode{1, 2}) }
	if missing := o.w.Check(o.w.TakeAll(), gone); missing != 0 {
		t.Fatalf("%d watches are missing", missing)
	}
	if state := o.w.State(); state.Degraded {
		t.Fatalf("%+v", state)
	}
}
