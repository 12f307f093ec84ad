package writeable_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

// late is a node whose application writes a in the moment in which the tree is moved to
// where upstream has another a. Each step from then on, the first is number 1, is told.
func (w *world) late(then func(n *node, step int, s writeable.Step)) *node {
	w.t.Helper()
	w.put("main", files{"a": "1", "b": "1"})
	n := w.node()
	rejected, written, step := false, false, 0
	n.step = func(s writeable.Step) {
		if rejected && !written && s == "keep the position" {
			written = true
			n.writeUnseen("a", "late")
		}
		if written {
			step++
			then(n, step, s)
		}
	}
	n.publish()
	n.settle(time.Minute)
	n.remote.set(func(r *nodeRemote) { r.before = func(string) { rejected = true } })
	w.put("main", files{"a": "theirs"})
	n.write("b", "2")
	n.settle(20 * time.Second)
	if !written {
		w.t.Fatal("the tree was not moved")
	}
	n.remote.set(func(r *nodeRemote) { r.before = nil })
	return n
}

// hasBoth expects upstream's change on the ref, and the application's on the side branch.
func (n *node) hasBoth() {
	n.t.Helper()
	n.faultsAre(report.Diverged)
	n.has(files{"a": "late", "b": "2"})
	n.remoteHas(side, files{"a": "late", "b": "2"})
	if got := n.upstream.Git("show", "main:a"); got != "theirs" {
		n.t.Errorf("a is %q on the ref, want upstream's change", got)
	}
}

// What both changed is told from what the application alone did, wherever the process ends
// after the tree was moved.
func TestLateAtEveryStep(t *testing.T) {
	total := 0
	t.Run("none", func(t *testing.T) {
		synctestWorld(t, func(w *world) {
			n := w.late(func(_ *node, step int, _ writeable.Step) { total = step })
			n.hasBoth()
			n.stop()
		})
	})
	if total < 10 {
		t.Fatalf("there are %d steps: that cannot be all", total)
	}
	for nth := 1; nth <= total; nth++ {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.late(func(_ *node, step int, _ writeable.Step) {
					if step == nth {
						runtime.Goexit()
					}
				})
				if n.step != nil {
					n.anchored()
					n.restart()
					n.settle(20 * time.Second)
				}
				n.hasBoth()
				n.stop()
			})
		})
	}
}

// A stop that interrupts the push right after the tree was moved.
func TestLateAtAStop(t *testing.T) {
	bubble(t, func(w *world) {
		var stopped chan error
		n := w.late(func(n *node, _ int, _ writeable.Step) {
			if stopped == nil && (&keeper{dir: n.dir}).position(n.t).Replaying {
				stopped = make(chan error, 1)
				go func(v *writeable.Volume) { stopped <- v.Stop(n.t.Context(), 30*time.Second) }(n.volume)
				time.Sleep(time.Second)
			}
		})
		n.do(<-stopped)
		n.running = false
		n.close()
		n.hasBoth()
	})
}

// A disk that is full as the volume diverges.
func TestLateOnAFullDisk(t *testing.T) {
	for name, full := range map[string]func(p store.Position) bool{
		"as it diverges":       func(p store.Position) bool { return p.Diverged },
		"as metadata is given": func(p store.Position) bool { return p.Move == nil && !p.Replaying },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				refused := false
				n := w.late(func(n *node, step int, _ writeable.Step) {
					if step == 1 {
						n.volume.Keeper = &keeperThat{Keeper: n.volume.Keeper, refuse: func(p store.Position) error {
							if !refused && full(p) {
								refused = true
								return errors.New("no space left on device")
							}
							return nil
						}}
					}
				})
				n.settle(5 * time.Minute)
				if !refused {
					t.Error("the disk was never full")
				}
				n.hasBoth()
				n.stop()
			})
		})
	}
}

// A repository that is lost before the volume has diverged.
func TestLateInALostRepository(t *testing.T) {
	bubble(t, func(w *world) {
		ended := false
		n := w.late(func(n *node, _ int, _ writeable.Step) {
			if !ended && (&keeper{dir: n.dir}).position(n.t).Replaying {
				ended = true
				runtime.Goexit()
			}
		})
		n.step, n.running = nil, false
		n.close()
		n.loseRepository()
		n.settle(20 * time.Second)
		if !ended {
			t.Error("it did not end")
		}
		n.hasBoth()
		n.stop()
	})
}
