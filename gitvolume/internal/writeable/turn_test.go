package writeable_test

import (
	"testing"
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// A volume that waits for one of the node's slots commits on, and pushes when it has one.
func TestPushTakesItsTurn(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		release := w.take(2)
		for i, content := range []string{"2", "3"} {
			n.write("a", content)
			n.settle(time.Minute)
			if got := n.unpushed(); got != i+1 {
				t.Errorf("%d commits are made, want %d", got, i+1)
			}
		}
		if got := w.count("main"); got != "1" {
			t.Errorf("%s commits on the remote while others push, want 1", got)
		}
		release()
		n.settle(time.Second)
		w.remoteHas("main", files{"a": "3"})
		w.take(2)() // The slot came back.
		n.stop()
		n.faultsAre()
	})
}

// Who stops waits for nobody, and leaves no slot taken.
func TestStopNeedsNoTurn(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		release := w.take(2)
		n.write("a", "2")
		n.settle(time.Minute)
		n.stop()
		w.remoteHas("main", files{"a": "2"})
		release()
		w.take(2)()
	})
}

// take has others have all of the node's slots until release.
func (w *world) take(number int) (release func()) {
	w.t.Helper()
	var releases []func(error)
	for range number {
		one, err := w.slots.Take(w.t.Context(), attributes.URL{Host: "elsewhere"})
		w.do(err)
		releases = append(releases, one)
	}
	return func() {
		for _, one := range releases {
			one(nil)
		}
	}
}

func (n *node) unpushed() int {
	n.said.mu.Lock()
	defer n.said.mu.Unlock()
	return n.said.figures.Unpushed
}
