package writeable_test

import (
	"path/filepath"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/inodeflags"
	"liken.sh/gitvolume/internal/report"
)

// A file that the application made immutable stays, whatever upstream makes of it. All else is
// committed, the stop too, and the volume is back on its ref once it may be changed.
func TestImmutableFile(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		b := filepath.Join(n.tree(), "b")
		inodeflags.Fix(n.t, b, inodeflags.Immutable)
		w.put("main", files{"b": "2"})
		n.write("a", "2")
		n.settle(time.Minute)
		n.faultsAre(report.Diverged)
		n.has(files{"a": "2", "b": "1"})
		w.remoteHas("main", files{"a": "1", "b": "2"})
		n.write("a", "3")
		n.stop()
		w.remoteHas(side, files{"a": "3", "b": "1"})
		n.publish()
		n.has(files{"a": "3", "b": "1"})
		if err := inodeflags.Set(b, 0); err != nil {
			n.t.Fatal(err)
		}
		w.put("main", files{"a": "3"}) // Somebody takes it over.
		n.write("a", "4")
		n.settle(time.Minute)
		n.faultsAre()
		w.remoteHas("main", files{"a": "4", "b": "2"})
		n.stop()
	})
}
