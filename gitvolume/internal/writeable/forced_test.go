package writeable_test

import (
	"testing"
	"time"

	"liken.sh/gitvolume/internal/report"
)

// What somebody took off the branch, the volume's own pushed commits too, leaves the tree, and
// the volume says so, whether or not it has commits that stay.
func TestRefForcedBack(t *testing.T) {
	bubble(t, func(w *world) {
		first := w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.write("precious", "1")
		n.settle(time.Minute)
		pushed := w.upstream.Tip(ref)
		w.upstream.SetRef(ref, first)
		n.write("b", "1")
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "1", "b": "1"})
		n.has(files{"a": "1", "b": "1"})
		n.happened(report.Rebased, "1 commit onto "+first[:7]+" of main; main was forced from "+pushed[:7]+" to "+first[:7]+": what was taken back")
		n.stop()
		w.upstream.SetRef(ref, first)
		n.said = newSaid()
		n.publish()
		n.has(files{"a": "1"})
		n.happened(report.Rebased, "Rebased: main was forced from ")
		n.stop()
	})
}
