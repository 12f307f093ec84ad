package writeable_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/writeable"
)

// beside is a volume beside another one of its ref, each with the directory old. The other
// has removed that since, made the directory spool, and set a mode, of which no commit tells.
func (w *world) beside() (n, other *node) {
	w.t.Helper()
	w.put("main", files{"a": "1", "b": "1", "c": "1"})
	n, other = w.node(), w.nodeOf("other", "default/other")
	n.publish()
	n.do(os.Mkdir(filepath.Join(n.tree(), "old"), 0o755))
	n.watch.touch()
	n.settle(time.Minute)
	n.stop()
	n.publish()
	other.publish()
	n.settle(time.Minute)
	other.do(os.Mkdir(filepath.Join(other.tree(), "spool"), 0o750))
	other.remove("old")
	other.chmod("b", 0o600)
	other.settle(20 * time.Second)
	w.recorded("b", "spool")
	return n, other
}

// keepsBoth expects what either volume changed of modes and directories to be in both trees
// and in the record, and own of the volume's to be recorded too.
func (w *world) keepsBoth(n, other *node, own ...string) {
	w.t.Helper()
	w.recorded(append(own, "b", "spool")...)
	other.stop()
	other.publish()
	for _, one := range []*node{n, other} {
		one.modeIs("a", 0o640)
		one.modeIs("b", 0o600)
		one.modeIs("spool", 0o750)
		if _, err := os.Lstat(filepath.Join(one.tree(), "old")); err == nil {
			w.t.Errorf("%s has the directory that was removed", one.handle)
		}
	}
	other.settle(time.Minute)
	w.recorded(append(own, "b", "spool")...)
	n.faultsAre()
	other.faultsAre()
	n.stop()
	other.stop()
}

// Where only the record of another volume moved, it is not ahead of the tree afterwards: no
// start after that takes what the other changed for something that this one undid.
func TestRecordOfOthersAcrossARestart(t *testing.T) {
	again := map[string]func(n *node){
		"published again":  func(n *node) { n.stop(); n.publish() },
		"stopped, resumed": func(n *node) { n.stop(); n.resume() },
		"killed":           func(n *node) { n.endAtOnce(func() {}) },
		"killed, and nothing is remembered": func(n *node) {
			n.endAtOnce(func() { n.do(os.Remove(filepath.Join(n.dir, "memory"))) })
		},
	}
	changes := map[string]func(n *node){
		"a mode":               func(n *node) { n.chmod("a", 0o640) },
		"a mode and a file":    func(n *node) { n.chmod("a", 0o640); n.write("d", "1") },
		"a mode before a stop": func(n *node) { n.chmod("a", 0o640); n.stop(); n.resume() },
	}
	for changed, change := range changes {
		for started, start := range again {
			t.Run(changed+", "+started, func(t *testing.T) {
				bubble(t, func(w *world) {
					n, other := w.beside()
					change(n)
					n.settle(20 * time.Second)
					n.modeIs("b", 0o600)
					n.modeIs("spool", 0o750)
					start(n)
					n.settle(time.Minute)
					w.keepsBoth(n, other, "a")
				})
			})
		}
	}
}

// The process ends before any one change to what outlives it, from the push on that finds
// the other's record. What the application changed meanwhile is recorded.
func TestRecordOfOthersAtEveryStep(t *testing.T) {
	for started, start := range map[string]func(n *node){
		"published": func(n *node) { n.publish() },
		"resumed":   func(n *node) { n.resume() },
	} {
		total := 0
		t.Run(started+", none", func(t *testing.T) {
			synctestWorld(t, func(w *world) {
				n, other := w.takingOver(func(step int) { total = step })
				n.chmod("c", 0o604)
				n.settle(time.Minute)
				w.keepsBoth(n, other, "a", "c")
			})
		})
		if total < 10 {
			t.Fatalf("there are %d steps: that cannot be all", total)
		}
		for nth := 1; nth <= total; nth++ {
			t.Run(fmt.Sprint(started, ", ", nth), func(t *testing.T) {
				bubble(t, func(w *world) {
					ended := false
					n, other := w.takingOver(func(step int) {
						if ended = step == nth; ended {
							runtime.Goexit()
						}
					})
					if !ended {
						t.Fatal("it did not end")
					}
					n.anchored()
					n.running = false
					n.close()
					n.do(os.Chmod(filepath.Join(n.tree(), "c"), 0o604))
					start(n)
					n.settle(time.Minute)
					w.keepsBoth(n, other, "a", "c")
				})
			})
		}
	}
}

// takingOver is beside, with the volume's own change pushed and what comes of that. Each step
// from the push on, the first is number 1, is told.
func (w *world) takingOver(then func(step int)) (n, other *node) {
	w.t.Helper()
	n, other = w.beside()
	pushes, step := false, 0
	n.volume.BeforeStep = func(writeable.Step) {
		if pushes {
			step++
			then(step)
		}
	}
	n.remote.set(func(r *nodeRemote) { r.before = func(operation string) { pushes = pushes || operation == "push" } })
	n.chmod("a", 0o640)
	n.settle(20 * time.Second)
	n.remote.set(func(r *nodeRemote) { r.before = nil })
	n.volume.BeforeStep = nil
	return n, other
}

// What the application changes as the other's record comes is its own: the mode of the same
// file counts, as the later one, and a directory that is not empty any more stays.
func TestWrittenAsARecordIsTakenOver(t *testing.T) {
	bubble(t, func(w *world) {
		n, other := w.beside()
		written := false
		n.remote.set(func(r *nodeRemote) {
			r.before = func(operation string) {
				if operation == "push" && !written {
					written = true
					n.do(os.Chmod(filepath.Join(n.tree(), "b"), 0o604))
					n.writeUnseen("old/new", "1")
				}
			}
		})
		n.chmod("a", 0o640)
		n.settle(20 * time.Second)
		n.modeIs("b", 0o604)
		n.modeIs("spool", 0o750)
		n.watch.touch()
		n.settle(time.Minute)
		w.recorded("a", "b", "spool")
		w.remoteHas("main", files{"a": "1", "b": "1", "c": "1", "old/new": "1"})
		n.stop()
		other.stop()
		other.publish()
		other.modeIs("b", 0o604)
		other.has(files{"a": "1", "b": "1", "c": "1", "old/new": "1"})
		other.stop()
		n.faultsAre()
	})
}
