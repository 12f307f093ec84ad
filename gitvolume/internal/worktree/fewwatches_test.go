package worktree

import (
	"fmt"
	"slices"
	"testing"

	"liken.sh/gitvolume/internal/watch"
)

// TestHintsOfFewWatches is C23: 500 directories and 64 watches.
func TestHintsOfFewWatches(t *testing.T) {
	if !inUserNamespace(t) {
		return
	}
	limit(t, "64")
	f := newVolume(t).watched(watch.New())
	defer f.w.Stop()
	f.until("an empty tree is watched", func() bool { return !f.w.State().Degraded })
	var paths []string
	for i := range 500 {
		paths = append(paths, fmt.Sprintf("d%03d/f", i))
	}
	for _, path := range paths {
		f.write(path, path)
	}
	f.until("all is committed", func() bool { f.keep(); return slices.Equal(f.names(), paths) })
	f.until("it is degraded", func() bool { return f.w.State().Degraded })
	if state := f.w.State(); state.Missing == 0 || state.Reason == "" {
		t.Errorf("64 watches for more than 500 directories: %+v", state)
	}
	f.keep() // Or it would look at everything once more, if it was to.
	before := f.wholes
	for _, path := range paths {
		f.write(path, "x")
	}
	x := must(Hasher{}.Blob([]byte("x")))
	all := func() bool {
		f.keep()
		for _, path := range paths {
			if f.memory.Entry(path).Blob != x {
				return false
			}
		}
		return true
	}
	f.until("all is committed again", all)
	if f.wholes == before {
		t.Error("the events of 64 directories told of changes in 500")
	}

	limit(t, "100000")
	f.until("it is not degraded any more", func() bool { return !f.w.State().Degraded })
	before = f.scans
	f.write(paths[400], "123")
	f.until("the file is committed", func() bool { f.keep(); return f.content(paths[400]) == "123" })
	if f.scans != before {
		t.Errorf("the raised limit did not help: %+v", f.w.State())
	}
}
