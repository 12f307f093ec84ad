package writeable_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

// writesInTheHeal has the application write c in the moment in which a volume with no commit
// of its own goes back to the ref, where upstream has another c. Each step from then on, the
// first is number 1, is told.
func (n *node) writesInTheHeal(content string, then func(step int)) {
	n.t.Helper()
	asked, written, step := false, false, 0
	n.remote.set(func(r *nodeRemote) { r.before = func(string) { asked = true } })
	n.step = func(s writeable.Step) {
		if asked && !written && s == "keep the position" {
			written = true
			n.writeUnseen("c", content)
		}
		if written {
			step++
			then(step)
		}
	}
	n.volume.BeforeStep = n.step
}

// staysForC expects upstream's c on the ref and the application's on the side branch, and the
// volume to go back once that is merged.
func (n *node) staysForC(content string) {
	n.t.Helper()
	n.faultsAre(report.Diverged)
	n.has(files{"a": "mine", "b": "1", "c": content})
	n.remoteHas("main", files{"a": "mine", "b": "1", "c": "theirs"})
	n.remoteHas(side, files{"a": "mine", "b": "1", "c": content})
	if (&keeper{dir: n.dir}).position(n.t).Late {
		n.t.Error("what was late is pushed, and still counts as late")
	}
	n.put("main", files{"c": content})
	n.write("b", "2")
	n.settle(20 * time.Second)
	n.faultsAre()
	n.remoteHas("main", files{"a": "mine", "b": "2", "c": content})
	n.stop()
}

// lateInTheHeal is a node at which that happened in a push.
func (w *world) lateInTheHeal(content string, then func(n *node, step int)) *node {
	w.t.Helper()
	n := w.diverged()
	w.put("main", files{"a": "mine", "c": "theirs"}) // A squash.
	n.writesInTheHeal(content, func(step int) { then(n, step) })
	n.chmod("b", 0o600)
	n.settle(8 * time.Second)
	n.happenedInTheHeal()
	return n
}

func (n *node) happenedInTheHeal() {
	n.t.Helper()
	if n.remote.set(func(r *nodeRemote) { r.before = nil }); n.upstream.Git("show", "main:c") != "theirs" {
		n.t.Error("upstream's change is undone on the ref")
	}
}

// What the application wrote as the volume went back keeps it on the side branch, wherever the
// process ends, and also if the next one pushes before it commits.
func TestWrittenInTheHealAtEveryStep(t *testing.T) {
	total := 0
	t.Run("none", func(t *testing.T) {
		synctestWorld(t, func(w *world) {
			n := w.lateInTheHeal("late", func(_ *node, step int) { total = step })
			n.step, n.volume.BeforeStep = nil, nil
			n.staysForC("late")
		})
	})
	if total < 10 {
		t.Fatalf("there are %d steps: that cannot be all", total)
	}
	for nth := 1; nth <= total; nth++ {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.lateInTheHeal("late", func(_ *node, step int) {
					if step == nth {
						runtime.Goexit()
					}
				})
				n.anchored()
				n.step, n.running = nil, false
				n.close()
				n.resume()
				n.settle(time.Minute)
				n.staysForC("late")
			})
		})
	}
}

// A disk that is full as what was late is committed.
func TestWrittenInTheHealOnAFullDisk(t *testing.T) {
	bubble(t, func(w *world) {
		refused := 0
		n := w.lateInTheHeal("late", func(n *node, step int) {
			if step == 1 {
				before := (&keeper{dir: n.dir}).position(t).Tip
				n.volume.Keeper = &keeperThat{Keeper: n.volume.Keeper, refuse: func(p store.Position) error {
					if p.Diverged && p.Tip != p.Base && p.Tip != before && refused < 3 {
						refused++
						return errors.New("no space left on device")
					}
					return nil
				}}
			}
		})
		n.settle(5 * time.Minute)
		if refused != 3 {
			t.Errorf("the disk was full %d times, want 3", refused)
		}
		n.staysForC("late")
	})
}

// What the class leaves out is not committed until it does not any more.
func TestLeftOutInTheHeal(t *testing.T) {
	bubble(t, func(w *world) {
		large := strings.Repeat("x", 200)
		n := w.diverged()
		n.arming.Policy.MaxFileSize = 100
		n.volume.Arm(n.arming)
		w.put("main", files{"a": "mine", "c": "theirs"})
		n.writesInTheHeal(large, func(int) {})
		n.chmod("b", 0o600)
		n.settle(time.Minute)
		n.happenedInTheHeal()
		n.faultsAre(report.Diverged)
		if words := n.said.faults[report.Diverged]; !strings.HasSuffix(words, "is not committed yet: c") {
			t.Errorf("it says %q, want what it waits for", words)
		}
		n.write("c", "less")
		n.settle(20 * time.Second)
		n.staysForC("less")
	})
}

// A class that pauses before what was late is committed, and goes on.
func TestPausedInTheHeal(t *testing.T) {
	for name, restarts := range map[string]bool{"at once": false, "with a restart": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.diverged()
				n.remote.set(func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrUnreachable} })
				n.chmod("b", 0o600)
				n.settle(10 * time.Second)
				class := policy.Class{Name: "fast", Driver: "git.liken.sh", Parameters: files{"push.quiesce": "5s", "armed": "false"}}
				n.arm(class)
				w.put("main", files{"a": "mine", "c": "theirs"})
				n.writesInTheHeal("late", func(int) {})
				n.remote.set(func(r *nodeRemote) { r.down = nil })
				n.settle(time.Hour)
				n.happenedInTheHeal()
				n.faultsAre(report.Diverged)
				if n.step = nil; restarts {
					n.endAtOnce(func() {})
					n.settle(time.Hour)
				}
				delete(class.Parameters, "armed")
				n.arm(class)
				n.settle(time.Minute)
				n.staysForC("late")
			})
		})
	}
}

// A file that is still being written as what was late is committed.
func TestStillWrittenInTheHeal(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.chmod("b", 0o600)
		n.settle(10 * time.Second)
		n.stop()
		w.put("main", files{"a": "mine", "c": "theirs"})
		n.start()
		n.writesInTheHeal("late", func(int) {})
		ctx := &busy{Context: t.Context(), times: 10_000, write: func(left int) {
			if p := (&keeper{dir: n.dir}).position(t); p.Diverged && p.Side.IsZero() {
				n.writeUnseen("c", strings.Repeat("x", 1+left%2))
			}
		}}
		n.do(n.volume.Prepare(ctx))
		if p := n.volume.Position(); !p.Late || !p.Diverged || p.Tip != p.Base {
			t.Errorf("it is at %+v, want what was late not to be committed", p)
		}
		ctx.times = 0
		n.follow()
		n.settle(time.Second)
		n.happenedInTheHeal()
		n.writeUnseen("c", "late")
		n.settle(time.Minute)
		n.staysForC("late")
	})
}

// A tree whose repository was lost, and of which the remote has no commit any more, is not
// taken for upstream's while the class pauses.
func TestPausedInALostRepository(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.write("a", "2")
		n.settle(time.Minute)
		n.stop()
		w.upstream.SetRef(ref, w.upstream.Commit(files{"other": "1"}))
		armed := n.arming
		n.arming = unarmed()
		n.loseRepository()
		n.settle(time.Minute)
		n.faultsAre(report.Diverged)
		n.volume.Arm(armed)
		n.settle(time.Minute)
		n.faultsAre(report.Diverged)
		n.has(files{"a": "2"})
		w.remoteHas("main", files{"other": "1"})
		w.remoteHas(side, files{"a": "2"})
		n.stop()
	})
}
