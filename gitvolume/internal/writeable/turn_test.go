package writeable_test

import (
	"fmt"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
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

// A push that takes long makes way for others, says so, and is made later.
func TestPushMakesWay(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.hangs = true })
		release := w.take(1)
		n.write("a", "2")
		n.settle(10 * time.Minute)
		n.faultsAre()
		began := time.Now()
		w.take(1)()
		if waited := time.Since(began); waited > 0 {
			t.Errorf("another waited for %s", waited)
		}
		n.settle(time.Second)
		n.faultsAre(report.PushFailed)
		release()
		n.remote.set(func(r *nodeRemote) { r.hangs = false })
		n.settle(time.Minute)
		w.remoteHas("main", files{"a": "2"})
		n.faultsAre()
		w.take(2)()
		n.stop()
	})
}

// A turn that is over before it is used is nobody's failure.
func TestTurnThatCameTooLate(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.late = 3 })
		n.write("a", "2")
		n.settle(6 * time.Second)
		w.remoteHas("main", files{"a": "2"})
		n.faultsAre()
		w.take(2)()
		n.stop()
	})
}

// take has others have all of the node's slots until release.
func (w *world) take(number int) (release func()) {
	w.t.Helper()
	var releases []func(error)
	for i := range number {
		_, one, err := w.slots.Take(w.t.Context(), attributes.URL{Host: fmt.Sprint("elsewhere", i)}, remote.Pushing)
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
