package writeable_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
)

// loseRepository is what a failing disk does, and the driver then.
func (n *node) loseRepository() {
	n.t.Helper()
	n.do(os.RemoveAll(filepath.Join(n.repoDir(), "objects")))
	n.do(os.Mkdir(filepath.Join(n.repoDir(), "objects"), 0o700))
	n.rebuild()
}

// rebuild is what the driver does when it comes to a repository that is broken.
func (n *node) rebuild() {
	n.t.Helper()
	if err := n.start().Prepare(n.t.Context()); !history.IsBroken(err) {
		n.t.Fatalf("the error is %v, want one of a broken repository", err)
	}
	n.close()
	n.do(os.RemoveAll(n.repoDir()))
	n.do(history.Create(n.repoDir()))
	n.do(n.start().Rebuild(n.t.Context()))
	n.do(n.volume.Prepare(n.t.Context()))
	n.follow()
}

// Of a lost repository nothing is lost that the tree has, be it committed or not.
func TestLostRepository(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.write("a", "2")
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrUnreachable} })
		n.write("a", "3")
		n.chmod("a", 0o600)
		n.settle(time.Minute)
		n.stop()
		n.writeUnseen("c", "1")
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		w.put("main", files{"b": "2"})
		other := w.nodeOf("other", "default/other")
		other.publish()
		other.chmod("b", 0o640)
		other.settle(time.Minute)
		other.stop()
		n.loseRepository()
		n.settle(time.Minute)
		want := files{"a": "3", "b": "2", "c": "1"}
		n.has(want)
		w.remoteHas("main", want)
		n.modeIs("a", 0o600)
		if got := w.record(); !strings.Contains(got, `file 0600 - - "a"`) || !strings.Contains(got, `file 0640 - - "b"`) {
			t.Errorf("the record is\n%s", got)
		}
		n.faultsAre()
		n.stop()
		n.remote.git("fsck", "--strict")
	})
}

func TestLostRepositoryOfDivergedVolume(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		n.stop()
		n.writeUnseen("b", "2")
		n.loseRepository()
		n.settle(time.Minute)
		n.has(files{"a": "mine", "b": "2"})
		w.remoteHas("main", files{"a": "theirs", "b": "1"})
		w.remoteHas(side, files{"a": "mine", "b": "2"})
		n.faultsAre(report.Diverged)
		n.stop()
	})
}

// The side branch that a volume was about to delete goes all the same.
func TestLostRepositoryOfVolumeThatIsBack(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.diverged()
		down := &remote.Failure{Kind: remote.ErrUnreachable}
		n.remote.set(func(r *nodeRemote) {
			r.before = func(operation string) {
				if operation == "delete" {
					r.set(func(r *nodeRemote) { r.down = down })
				}
			}
		})
		w.put("main", files{"a": "mine"})
		n.write("b", "2")
		n.settle(10 * time.Second)
		n.happened(report.Healed, "main")
		n.stop()
		if w.upstream.Tip(side) == "" {
			t.Fatal("the side branch is gone")
		}
		n.remote.set(func(r *nodeRemote) { r.before, r.down = nil, nil })
		n.loseRepository()
		n.settle(time.Minute)
		if w.upstream.Tip(side) != "" {
			t.Error("the side branch is still there")
		}
		w.remoteHas("main", files{"a": "mine", "b": "2"})
		n.faultsAre()
		n.stop()
	})
}

// Upstream was rewritten meanwhile: nobody can tell whose changes are whose.
func TestLostRepositoryOfRewrittenRemote(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.write("a", "2")
		n.settle(time.Minute)
		n.stop()
		w.upstream.SetRef(ref, w.upstream.Commit(files{"other": "1"}))
		n.loseRepository()
		n.settle(time.Minute)
		n.has(files{"a": "2"})
		w.remoteHas("main", files{"other": "1"})
		w.remoteHas(side, files{"a": "2"})
		n.faultsAre(report.Diverged)
		n.stop()
	})
}
