package writeable_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
)

// heals takes a diverged volume back to main, where the side branch was squashed.
func (n *node) heals() {
	n.t.Helper()
	n.put("main", files{"a": "mine", "fix": "1"})
	n.settle(6 * time.Minute)
	n.faultsAre()
	n.happened(report.Healed, "main")
	n.has(files{"a": "mine", "b": "2", "fix": "1"})
}

// A side branch that stays once the volume is back from it, it does not go on from again,
// whatever upstream does then.
func TestLeftSideBranch(t *testing.T) {
	rows := map[string]func(n *node){
		"others' commits on it": func(n *node) {
			n.put("main.notes", files{"fix": "1"})
		},
		"others' commits on it that upstream does not want": func(n *node) {
			n.put("main.notes", files{"a": "fixed"})
		},
		"its deletion is declined": func(n *node) {
			n.remote.set(func(r *nodeRemote) { r.keeps = true })
		},
		"others' commits on it at its deletion": func(n *node) {
			n.remote.set(func(r *nodeRemote) {
				r.before = func(operation string) {
					if operation == "delete" {
						n.put("main.notes", files{"late": "1"})
					}
				}
			})
		},
	}
	for name, keep := range rows {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.diverged()
				pushed := w.upstream.Tip(side)
				keep(n)
				n.write("b", "2")
				n.settle(time.Second)
				n.heals()
				kept := w.upstream.Tip(side)
				for _, tip := range []string{kept, pushed, w.put("main.notes", files{"more": "1"})} {
					w.upstream.SetRef(side, tip)
					n.stop()
					w.put("main", files{"a": "theirs after " + tip})
					n.publish()
					n.faultsAre()
					n.has(files{"a": "theirs after " + tip, "b": "2", "fix": "1"})
				}
				n.write("c", "3")
				n.settle(10 * time.Second)
				n.faultsAre()
				if got, err := w.upstream.TryGit("show", "main:c"); got != "3" {
					t.Errorf("c is %q on main, %v, want what was written", got, err)
				}
				n.stop()
			})
		})
	}
}

// divergesAgain is a volume with a side branch that it left, and that has to go to one.
func (n *node) divergesAgain() {
	n.t.Helper()
	n.put("main", files{"a": "theirs again"})
	n.write("a", "mine again")
	n.settle(10 * time.Second)
}

// The side branch of before goes before the next one is pushed, and is not replaced.
func TestNextSideBranch(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.remote.set(func(r *nodeRemote) { r.keeps = true })
		left := w.upstream.Tip(side)
		n.write("b", "2")
		n.heals()
		n.divergesAgain()
		n.faultsAre(report.Diverged, report.PushFailed)
		if words := n.said.faults[report.PushFailed]; !strings.Contains(words, "delete or rename it") || !strings.Contains(words, "deletion prohibited") {
			t.Errorf("it says %q", words)
		}
		if got := w.upstream.Tip(side); got != left {
			t.Errorf("the side branch is at %q, want it as it was left", got)
		}
		n.stop()
		n.publish()
		n.has(files{"a": "mine again", "b": "2", "fix": "1"})
		n.remote.set(func(r *nodeRemote) { r.keeps = false })
		n.settle(20 * time.Minute)
		n.faultsAre(report.Diverged)
		w.remoteHas(side, files{"a": "mine again", "b": "2", "fix": "1"})
		w.put("main", files{"a": "mine again"})
		n.write("c", "3")
		n.settle(10 * time.Second)
		n.faultsAre()
		if w.upstream.Tip(side) != "" {
			t.Error("the side branch is still there")
		}
		n.stop()
	})
}

func TestNextSideBranchWithOthersCommits(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		theirs := w.put("main.notes", files{"fix": "1"})
		n.write("b", "2")
		n.heals()
		n.divergesAgain()
		n.faultsAre(report.Diverged, report.PushFailed)
		if words := n.said.faults[report.PushFailed]; !strings.Contains(words, "somebody put commits") || !strings.Contains(words, "delete or rename it") {
			t.Errorf("it says %q", words)
		}
		if got := w.upstream.Tip(side); got != theirs {
			t.Errorf("the side branch is at %q, want theirs", got)
		}
		w.upstream.Git("update-ref", "-d", side)
		n.settle(20 * time.Minute)
		n.faultsAre(report.Diverged)
		w.remoteHas(side, files{"a": "mine again", "b": "2", "fix": "1"})
		n.stop()
	})
}

// A volume that ends between the heal and the deletion goes on at the ref all the same.
func TestLeavingSideBranch(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.stop()
		w.put("main", files{"a": "mine"})
		n.do(n.start().Prepare(n.t.Context()))
		n.happened(report.Healed, "main")
		n.close()
		w.put("main", files{"a": "theirs again"})
		n.publish()
		n.has(files{"a": "theirs again", "b": "1"})
		n.settle(time.Minute)
		n.faultsAre()
		if w.upstream.Tip(side) != "" {
			t.Error("the side branch is still there")
		}
		n.stop()
	})
}

// What the ref has of a side branch when a node sees it, stays closed to that node: one with
// a tree of before, and one that has nothing yet.
func TestSideBranchLeftByAnotherNode(t *testing.T) {
	for _, name := range []string{"a kept tree", "no tree"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				other := w.node()
				if name == "a kept tree" {
					w.put("main", files{"a": "0"})
					other.publish()
					other.stop()
				}
				n := w.diverged()
				w.put("main.notes", files{"fix": "1"})
				n.write("b", "2")
				n.heals()
				n.stop()
				for _, content := range []string{"mine", "theirs again"} {
					w.put("main", files{"a": content})
					other.publish()
					other.faultsAre()
					other.has(files{"a": content, "b": "2", "fix": "1"})
					other.stop()
				}
			})
		})
	}
}

// What the volume pushed to the side branch on another node is not left behind with what this
// one knows of it, unless the ref has it too.
func TestSideBranchOfTwoNodes(t *testing.T) {
	for name, merged := range map[string]files{
		"a part is merged": {"a": "mine"},
		"all is merged":    {"a": "mine", "b": "other"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.diverged()
				n.stop()
				other := w.node()
				other.publish()
				other.write("b", "other")
				other.settle(10 * time.Second)
				other.stop()
				w.put("main", merged)
				n.publish()
				n.happened(report.Healed, "main")
				n.stop()
				open := merged["b"] == ""
				if !open {
					w.put("main", files{"b": "theirs"})
				}
				n.publish()
				if open {
					n.faultsAre(report.Diverged)
					n.has(files{"a": "mine", "b": "other"})
				} else {
					n.faultsAre()
					n.has(files{"a": "mine", "b": "theirs"})
				}
				n.stop()
			})
		})
	}
}

// A push to the side branch of which the answer was lost is the volume's own, when it heals.
func TestLeftSideBranchOfALostAnswer(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.remote.set(func(r *nodeRemote) { r.lost = true })
		n.write("b", "2")
		n.settle(6 * time.Second)
		n.remote.set(func(r *nodeRemote) {
			r.down = &remote.Failure{Kind: remote.ErrUnreachable, Cause: errors.New("no route")}
		})
		n.stop()
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		w.remoteHas(side, files{"a": "mine", "b": "2"})
		w.put("main", files{"a": "mine"})
		n.publish()
		n.happened(report.Healed, "the branch stays")
		n.settle(time.Minute)
		n.stop()
		w.put("main", files{"a": "theirs", "b": "theirs"})
		n.publish()
		n.faultsAre()
		n.has(files{"a": "theirs", "b": "theirs"})
		n.stop()
	})
}

// A branch that another node pushed in place of the one that was to be deleted, and that was
// merged in its turn, is left behind like that.
func TestSideBranchAfterTheOneLeft(t *testing.T) {
	for name, pushes := range map[string]bool{"after a push": true, "before it": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.diverged()
				n.stop()
				w.put("main", files{"a": "mine"})
				n.do(n.start().Prepare(n.t.Context()))
				n.happened(report.Healed, "main")
				n.close() // The process ends before it has deleted the branch.
				other := w.node()
				other.publish()
				other.settle(time.Minute)
				if w.upstream.Tip(side) != "" {
					t.Error("the side branch is still there")
				}
				w.put("main", files{"a": "theirs 2"})
				other.write("a", "mine 2")
				other.settle(10 * time.Second)
				other.faultsAre(report.Diverged)
				other.stop()
				w.put("main", files{"a": "mine 2"})
				n.said = newSaid()
				n.do(n.start().Prepare(n.t.Context()))
				n.has(files{"a": "mine 2", "b": "1"})
				if pushes {
					n.follow()
					n.settle(time.Minute)
					n.stop()
				} else {
					n.close()
				}
				w.put("main", files{"a": "theirs 3"})
				n.publish()
				n.faultsAre()
				n.has(files{"a": "theirs 3", "b": "1"})
				n.stop()
			})
		})
	}
}
