package writeable_test

import (
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
)

// mergedAndTakenBack is a volume whose side branch was merged and stayed, as the remote keeps
// it, until the ref was forced back to before that. The branch is where it was pushed.
func (w *world) mergedAndTakenBack() (n *node, pushed string) {
	w.t.Helper()
	n = w.diverged()
	before, pushed := w.upstream.Tip(ref), w.upstream.Tip(side)
	n.remote.set(func(r *nodeRemote) { r.keeps = true })
	w.upstream.SetRef(ref, w.upstream.Commit(files{"a": "both", "b": "1"}, before, pushed))
	n.write("b", "2")
	n.settle(10 * time.Second)
	n.faultsAre()
	n.happened(report.Healed, "main")
	n.remote.set(func(r *nodeRemote) { r.keeps = false })
	w.upstream.SetRef(ref, before)
	return n, pushed
}

// stays expects the side branch to be where it was.
func (w *world) stays(pushed string) {
	w.t.Helper()
	if got := w.upstream.Tip(side); got != pushed {
		w.t.Errorf("the side branch is at %q, want it as it was pushed", got)
	}
}

// A side branch that was left behind is all that has what is on it, once its merge was taken
// back: the next one does not replace it until it is merged again.
func TestLeftSideBranchTakenBack(t *testing.T) {
	bubble(t, func(w *world) {
		n, pushed := w.mergedAndTakenBack()
		n.write("c", "1")
		n.settle(10 * time.Second)
		n.faultsAre()
		n.has(files{"a": "theirs", "b": "1", "c": "1"})
		n.divergesAgain()
		n.faultsAre(report.Diverged, report.PushFailed)
		if words := n.said.faults[report.PushFailed]; !strings.Contains(words, "merge it into") {
			t.Errorf("it says %q", words)
		}
		w.stays(pushed)
		w.upstream.SetRef(ref, w.upstream.Commit(files{"a": "all", "b": "1", "c": "1"}, w.upstream.Tip(ref), pushed))
		n.settle(6 * time.Minute)
		n.faultsAre(report.Diverged)
		w.remoteHas(side, files{"a": "mine again", "b": "1", "c": "1"})
		n.stop()
	})
}

// The next start goes on from it.
func TestLeftSideBranchTakenBackAtAStart(t *testing.T) {
	bubble(t, func(w *world) {
		n, pushed := w.mergedAndTakenBack()
		n.stop()
		n.publish()
		n.settle(time.Minute)
		n.faultsAre(report.Diverged)
		n.has(files{"a": "mine", "b": "1"})
		w.stays(pushed)
		n.write("b", "3")
		n.settle(10 * time.Second)
		w.remoteHas(side, files{"a": "mine", "b": "3"})
		n.stop()
	})
}

// While the ref is gone, nothing else may have what is on a side branch that was left behind.
func TestLeftSideBranchWithoutTheRef(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.remote.set(func(r *nodeRemote) { r.keeps = true })
		pushed := w.upstream.Tip(side)
		n.write("b", "2")
		n.heals()
		n.divergesAgain()
		n.faultsAre(report.Diverged, report.PushFailed)
		n.remote.set(func(r *nodeRemote) { r.keeps = false })
		tip := w.upstream.Tip(ref)
		w.upstream.Git("update-ref", "-d", ref)
		n.settle(6 * time.Minute)
		w.stays(pushed)
		w.upstream.SetRef(ref, tip)
		n.settle(6 * time.Minute)
		n.faultsAre(report.Diverged)
		w.remoteHas(side, files{"a": "mine again", "b": "2", "fix": "1"})
		n.stop()
	})
}

// A deletion that could not be done at once is not done any more once the merge was taken back.
func TestMergeTakenBackBeforeTheDeletion(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		before, pushed := w.upstream.Tip(ref), w.upstream.Tip(side)
		n.remote.set(func(r *nodeRemote) {
			r.before = func(operation string) {
				if operation == "delete" {
					r.set(func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrUnreachable} })
				}
			}
		})
		w.put("main", files{"a": "mine"})
		n.write("b", "2")
		n.settle(7 * time.Second)
		n.happened(report.Healed, "main")
		n.faultsAre(report.PushFailed)
		w.upstream.SetRef(ref, before)
		n.remote.set(func(r *nodeRemote) { r.before, r.down = nil, nil })
		n.settle(time.Minute)
		n.faultsAre()
		w.remoteHas("main", files{"a": "theirs", "b": "2"})
		w.stays(pushed)
		n.stop()
		n.publish()
		n.faultsAre(report.Diverged)
		n.has(files{"a": "mine", "b": "1"})
		n.stop()
	})
}

// A ref that was amended, and has what is on the side branch still, leaves that behind.
func TestLeftSideBranchOfAnAmendedRef(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.remote.set(func(r *nodeRemote) { r.keeps = true })
		before := w.upstream.Tip(ref)
		n.write("b", "2")
		n.heals()
		n.stop()
		for _, content := range []string{"mine", "theirs again"} {
			before = w.upstream.Commit(files{"a": content, "b": "2", "fix": "1"}, before)
			w.upstream.SetRef(ref, before)
			n.publish()
			n.faultsAre()
			n.has(files{"a": content, "b": "2", "fix": "1"})
			n.stop()
		}
	})
}
