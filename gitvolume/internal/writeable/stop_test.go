package writeable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/writeable"
)

// gated lets nobody begin native work while gate is closed.
type gated struct {
	writeable.Keeper
	gate chan struct{}
}

func (g *gated) Native() func() {
	<-g.gate
	return g.Keeper.Native()
}

// Whoever stops a volume waits no longer than they said, whatever Run is at. Nothing is lost
// of that, and the next stop commits it.
func TestStopReturnsInTime(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		gate := &gated{gate: make(chan struct{})}
		close(gate.gate)
		n.change = func(s *writeable.Settings) { gate.Keeper, s.Keeper = s.Keeper, gate }
		n.publish()
		n.settle(time.Minute)
		gate.gate = make(chan struct{})
		n.write("a", "2")
		n.settle(10 * time.Second) // The look at the tree does not end.
		began := time.Now()
		ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
		defer cancel()
		if err := n.volume.Stop(ctx, 30*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the stop gives %v, want the end of its time", err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("it took %s, had 20 s", took)
		}
		close(gate.gate)
		n.settle(time.Minute)
		w.remoteHas("main", files{"a": "2"})
		n.write("a", "3")
		n.stop()
		w.remoteHas("main", files{"a": "3"})
		n.faultsAre()
	})
}

// A push of which only the answer was lost, at the stop, has not failed any more once the
// next start finds it on the remote.
func TestLostAnswerAtTheStop(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.lost = true })
		n.write("a", "2")
		n.stop()
		n.faultsAre(report.PushFailed)
		w.remoteHas("main", files{"a": "2"})
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		w.put("main", files{"b": "1"})
		n.publish()
		n.settle(time.Minute)
		n.has(files{"a": "2", "b": "1"})
		n.faultsAre()
		n.stop()
	})
}
