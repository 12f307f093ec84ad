package writeable_test

import (
	"testing"
	"time"
)

// A move to a commit that turns out to mean nothing, and that a crash cut short, does not
// keep the volume from the commits that come after.
func TestMoveToMalformedCommit(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		moves := n.endInMove(false)
		n.publish()
		n.settle(time.Minute)
		*moves = true
		good := w.upstream.Tip(ref)
		odd := w.upstream.Tree("100644", "a", w.upstream.Git("rev-parse", "main:"))
		bad := w.upstream.Git("commit-tree", "-m", "odd", "-p", good, odd)
		w.upstream.SetRef(ref, bad)
		n.write("c", "1")
		n.settle(10 * time.Second)
		n.step, n.running = nil, false
		n.close()
		w.upstream.SetRef(ref, w.upstream.Git("commit-tree", "-m", "mended", "-p", bad, good+"^{tree}"))
		n.writeUnseen("d", "1")
		n.rebuild()
		n.settle(time.Minute)
		want := files{"a": "1", "b": "1", "c": "1", "d": "1"}
		n.has(want)
		w.remoteHas("main", want)
		n.faultsAre()
		n.stop()
	})
}
