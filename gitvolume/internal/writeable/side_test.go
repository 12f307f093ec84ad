package writeable_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/writeable"
)

// diverged is a node whose volume went to its side branch, since upstream changed a as it
// did.
func (w *world) diverged() *node {
	w.t.Helper()
	w.put("main", files{"a": "1", "b": "1"})
	n := w.node()
	n.publish()
	n.settle(time.Minute)
	w.put("main", files{"a": "theirs"})
	n.write("a", "mine")
	n.settle(10 * time.Second)
	n.faultsAre(report.Diverged)
	if words := n.said.faults[report.Diverged]; !strings.Contains(words, "main.notes") || !strings.Contains(words, "into main") {
		w.t.Errorf("it says %q, want both branches", words)
	}
	w.remoteHas("main", files{"a": "theirs", "b": "1"})
	w.remoteHas(side, files{"a": "mine", "b": "1"})
	n.has(files{"a": "mine", "b": "1"})
	return n
}

func TestHeal(t *testing.T) {
	merged := files{"a": "both", "b": "1"}
	rows := map[string]func(w *world){
		"merge": func(w *world) {
			w.upstream.SetRef(ref, w.upstream.Commit(merged, w.upstream.Tip(ref), w.upstream.Tip(side)))
		},
		"squash": func(w *world) { w.put("main", files{"a": "mine"}) },
		"squash, and then something else": func(w *world) {
			w.put("main", files{"a": "mine", "c": "1"})
		},
		"ours by force": func(w *world) { w.upstream.SetRef(ref, w.upstream.Tip(side)) },
	}
	for name, merge := range rows {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.diverged()
				merge(w)
				n.write("b", "2")
				n.settle(10 * time.Second)
				n.faultsAre()
				n.happened(report.Healed, "main")
				if w.upstream.Tip(side) != "" {
					t.Error("the side branch is still there")
				}
				if got := w.upstream.Git("show", "main:b"); got != "2" {
					t.Errorf("b is %q, want what was written since", got)
				}
				n.stop()
				w.upstream.Git("fsck", "--strict")
			})
		})
	}
}

// Nothing heals while what was pushed to the side branch is not on the ref.
func TestNoHeal(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		w.put("main", files{"c": "1"})
		n.write("b", "2")
		n.settle(10 * time.Second)
		n.faultsAre(report.Diverged)
		w.remoteHas(side, files{"a": "mine", "b": "2"})
		n.has(files{"a": "mine", "b": "2"})
		n.stop()
	})
}

// A file that the application writes in the very moment of the heal, and upstream has too,
// takes the volume to its side branch again: a new one, for the one before was merged.
func TestWrittenInTheHeal(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		pushed := w.upstream.Tip(side)
		w.put("main", files{"a": "mine", "c": "theirs"}) // A squash.
		asked, written := false, false
		n.remote.set(func(r *nodeRemote) { r.before = func(string) { asked = true } })
		n.volume.BeforeStep = func(s writeable.Step) {
			if asked && !written && s == "keep the position" {
				written = true
				n.writeUnseen("c", "late")
			}
		}
		n.write("b", "2")
		n.settle(8 * time.Second)
		n.faultsAre(report.Diverged)
		n.has(files{"a": "mine", "b": "2", "c": "late"})
		w.remoteHas(side, files{"a": "mine", "b": "2", "c": "late"})
		if w.upstream.Git("merge-base", pushed, side) == pushed {
			t.Error("the side branch goes on from the one that was merged")
		}
		n.remote.set(func(r *nodeRemote) { r.before = nil })
		n.stop()
	})
}

// A merge of the side branch that is taken back before the branch was deleted leaves it to
// the volume.
func TestMergeTakenBack(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.stop()
		before, pushed := w.upstream.Tip(ref), w.upstream.Tip(side)
		w.upstream.SetRef(ref, w.upstream.Commit(files{"a": "both", "b": "1"}, before, pushed))
		n.do(n.start().Prepare(n.t.Context()))
		n.happened(report.Healed, "main")
		n.close() // The process ends before it has deleted the branch.
		w.upstream.SetRef(ref, before)
		n.publish()
		n.settle(time.Minute)
		n.faultsAre(report.Diverged)
		if got := w.upstream.Tip(side); got != pushed {
			t.Errorf("the side branch is at %q, want it as it was pushed", got)
		}
		n.has(files{"a": "mine", "b": "1"})
		n.write("b", "2")
		n.settle(10 * time.Second)
		w.remoteHas(side, files{"a": "mine", "b": "2"})
		n.stop()
	})
}

func TestSideBranchGone(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		w.upstream.Git("update-ref", "-d", side)
		n.write("b", "2")
		n.settle(10 * time.Second)
		w.remoteHas(side, files{"a": "mine", "b": "2"})
		n.faultsAre(report.Diverged)
		n.stop()
	})
}

func TestOthersCommitsOnSideBranch(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		theirs := w.put("main.notes", files{"fix": "1"})
		n.write("b", "2")
		n.settle(10 * time.Second)
		n.faultsAre(report.Diverged, report.PushFailed)
		if got := w.upstream.Tip(side); got != theirs {
			t.Errorf("the side branch is at %s, want theirs", got)
		}
		w.upstream.SetRef(ref, w.upstream.Commit(files{"a": "both", "b": "1", "fix": "1"}, w.upstream.Tip(ref), theirs))
		n.settle(6 * time.Minute)
		n.faultsAre()
		w.remoteHas("main", files{"a": "both", "b": "2", "fix": "1"})
		n.has(files{"a": "both", "b": "2", "fix": "1"})
		n.happened(report.Healed, "the branch stays")
		if got := w.upstream.Tip(side); got != theirs {
			t.Errorf("the side branch is at %q, want it kept", got)
		}
		n.stop()
	})
}

func TestForeignSideBranch(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		foreign := w.put("main.notes", files{"f": "1"})
		n := w.node()
		n.publish()
		n.has(files{"a": "1"})
		n.settle(time.Minute)
		w.put("main", files{"a": "theirs"})
		n.write("a", "mine")
		n.settle(10 * time.Second)
		n.faultsAre(report.Diverged, report.PushFailed)
		if words := n.said.faults[report.PushFailed]; !strings.Contains(words, "not of this volume") {
			t.Errorf("it says %q", words)
		}
		if got := w.upstream.Tip(side); got != foreign {
			t.Errorf("the side branch is at %s, want it untouched", got)
		}
		n.stop()
	})
}

// A diverged volume goes on where it is, on whichever node it is started.
// A long branch of somebody's in the place of the side branch, which has nothing in common
// with the ref, keeps nobody waiting.
func TestLongForeignSideBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var stream strings.Builder
	for _, branch := range []string{"main", "main.notes"} {
		for i := range 4000 {
			fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter t <t@example.invalid> %d +0000\ndata 2\nup\n", branch, 1_700_000_000+i)
			fmt.Fprintf(&stream, "M 100644 inline f\ndata %d\n%s\n", len(branch), branch)
		}
	}
	w.upstream.Import(stream.String())
	n := w.node()
	n.publish()
	n.has(files{"f": "main"})
	n.stop()
	n.faultsAre()
}

func TestDivergedOnAnotherNode(t *testing.T) {
	bubble(t, func(w *world) {
		first := w.diverged()
		first.stop()
		second := w.node()
		second.publish()
		second.faultsAre(report.Diverged)
		second.has(files{"a": "mine", "b": "1"})
		second.write("b", "2")
		second.settle(10 * time.Second)
		w.remoteHas(side, files{"a": "mine", "b": "2"})
		second.stop()

		first.publish()
		first.has(files{"a": "mine", "b": "2"})
		first.faultsAre(report.Diverged)
		first.write("c", "3")
		first.settle(10 * time.Second)
		w.remoteHas(side, files{"a": "mine", "b": "2", "c": "3"})
		first.faultsAre(report.Diverged)
		first.stop()

		w.put("main", files{"a": "mine", "b": "2", "c": "3"})
		second.publish()
		second.faultsAre()
		second.has(files{"a": "mine", "b": "2", "c": "3"})
		second.stop()
	})
}

// A volume that diverged elsewhere is followed to its side branch by a tree that was kept.
func TestKeptTreeOfDivergedVolume(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		old := w.node()
		old.publish()
		old.stop()
		n := w.node()
		n.publish()
		w.put("main", files{"a": "theirs"})
		n.write("a", "mine")
		n.settle(10 * time.Second)
		n.faultsAre(report.Diverged)
		n.stop()
		old.publish()
		old.has(files{"a": "mine", "b": "1"})
		old.faultsAre(report.Diverged)
		old.stop()
	})
}

func TestDivergedWithoutRemote(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.remote.set(func(r *nodeRemote) {
			r.down = &remote.Failure{Kind: remote.ErrUnreachable, Cause: errors.New("no route")}
		})
		n.write("b", "2")
		n.stop()
		n.publish()
		n.faultsAre(report.Diverged, report.PushFailed, report.Stale)
		n.has(files{"a": "mine", "b": "2"})
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		n.settle(10 * time.Minute)
		w.remoteHas(side, files{"a": "mine", "b": "2"})
		n.faultsAre(report.Diverged)
		n.stop()
	})
}
