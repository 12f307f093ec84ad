package writeable_test

import (
	"testing"
	"time"

	"liken.sh/gitvolume/internal/report"
)

// TestRebasesAreCounted: those that put commits on top of others, also where they conflict, and
// not where upstream is followed without any.
func TestRebasesAreCounted(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.stop()
		w.put("main", files{"b": "1"})
		n.publish()
		if n.has(files{"a": "1", "b": "1"}); n.said.rebases != 0 {
			t.Errorf("%d rebases of no commit", n.said.rebases)
		}
		w.put("main", files{"c": "1"})
		n.write("d", "1")
		n.settle(time.Minute)
		if w.remoteHas("main", files{"a": "1", "b": "1", "c": "1", "d": "1"}); n.said.rebases != 1 {
			t.Errorf("%d rebases, want 1", n.said.rebases)
		}
		w.put("main", files{"a": "theirs"})
		n.write("a", "mine")
		n.settle(time.Minute)
		if n.faultsAre(report.Diverged); n.said.rebases < 2 {
			t.Errorf("%d rebases, want the one that conflicted too", n.said.rebases)
		}
		n.stop()
	})
}
