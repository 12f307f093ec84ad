package writeable_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/writeable"
)

// files is a tree in a test.
type files = map[string]string

func TestFreshTree(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "d/b": "2"})
		n := w.node()
		n.publish()
		n.has(files{"a": "1", "d/b": "2"})
		info, err := os.Stat(n.tree())
		w.do(err)
		if info.Mode().Perm() != 0o777 {
			t.Errorf("the root has mode %v, want 0777", info.Mode())
		}
		n.settle(time.Minute)
		n.faultsAre()
		n.stop()
		if got := w.count("main"); got != "1" {
			t.Errorf("%s commits, want the one there was: nothing was written", got)
		}
	})
}

func TestEmptyRemote(t *testing.T) {
	bubble(t, func(w *world) {
		n := w.node()
		n.publish()
		n.has(files{})
		n.write("first", "1")
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"first": "1"})
		n.faultsAre()
		n.stop()
	})
}

func TestMissingRef(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("trunk", files{"a": "1"})
		n := w.node()
		err := n.start().Prepare(w.t.Context())
		if !errors.Is(err, remote.ErrNoRef) || !strings.Contains(err.Error(), "trunk") {
			t.Errorf("the error is %v, want one that names what there is", err)
		}
		if _, err := os.Stat(n.tree()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a tree was made: %v", err)
		}
		// Who asked raises it, and asks again and again: in between it lasts.
		n.said.Raise(report.FetchFailed, err.Error())
		if err := n.volume.Prepare(w.t.Context()); !errors.Is(err, remote.ErrNoRef) {
			t.Errorf("the error is %v", err)
		}
		n.faultsAre(report.FetchFailed)
		w.put("main", files{"b": "1"})
		n.do(n.volume.Prepare(w.t.Context()))
		n.faultsAre()
		n.close()
	})
}

func TestForeignDirectory(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.writeUnseen("somebody's", "x")
		if err := n.start().Prepare(w.t.Context()); !errors.Is(err, writeable.ErrForeignTree) {
			t.Errorf("the error is %v, want %v", err, writeable.ErrForeignTree)
		}
		n.has(files{"somebody's": "x"})
		n.close()
	})
}

func TestNoFetch(t *testing.T) {
	down := func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrUnreachable, Words: "no route"} }
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.remote.set(down)
		if err := n.start().Prepare(w.t.Context()); !errors.Is(err, remote.ErrUnreachable) {
			t.Errorf("without a tree the error is %v, want %v", err, remote.ErrUnreachable)
		}
		n.close()
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		n.publish()
		n.stop()

		n.remote.set(down)
		n.publish()
		n.has(files{"a": "1"})
		n.faultsAre(report.Stale)
		n.write("a", "2")
		n.settle(10 * time.Second)
		n.faultsAre(report.Stale, report.PushFailed)
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		n.settle(6 * time.Minute)
		n.faultsAre()
		w.remoteHas("main", files{"a": "2"})
		n.stop()
	})
}

// keptTree is a row of the table of what a first publish does with a tree that is there.
type keptTree struct {
	name string
	// local is what the node has beyond upstream, when the remote is away.
	local files
	// upstream is what others do meanwhile.
	upstream func(w *world)
	// after the next first publish:
	tree, main, side files
	faults           []report.Fault
}

func keptTrees() []keptTree {
	return []keptTree{
		{name: "equal", tree: files{"a": "1", "b": "1"}, main: files{"a": "1", "b": "1"}},
		{name: "ahead", local: files{"a": "2"}, tree: files{"a": "2", "b": "1"}, main: files{"a": "2", "b": "1"}},
		{
			name: "behind", upstream: func(w *world) { w.put("main", files{"b": "", "c": "3"}) },
			tree: files{"a": "1", "c": "3"}, main: files{"a": "1", "c": "3"},
		},
		{
			name: "diverged", local: files{"a": "2"}, upstream: func(w *world) { w.put("main", files{"b": "3"}) },
			tree: files{"a": "2", "b": "3"}, main: files{"a": "2", "b": "3"},
		},
		{
			name: "diverged with a conflict", local: files{"a": "2"}, upstream: func(w *world) { w.put("main", files{"a": "3"}) },
			tree: files{"a": "2", "b": "1"}, main: files{"a": "3", "b": "1"}, side: files{"a": "2", "b": "1"},
			faults: []report.Fault{report.Diverged},
		},
		{
			name: "both did the same", local: files{"a": "2"}, upstream: func(w *world) { w.put("main", files{"a": "2"}) },
			tree: files{"a": "2", "b": "1"}, main: files{"a": "2", "b": "1"},
		},
		{
			name: "forced back to less", local: files{"c": "3"},
			upstream: func(w *world) { w.upstream.SetRef(ref, w.upstream.Commit(files{"a": "0"})) },
			tree:     files{"a": "0", "c": "3"}, main: files{"a": "0", "c": "3"},
		},
		{
			name:     "forced to something else, with nothing of its own",
			upstream: func(w *world) { w.upstream.SetRef(ref, w.upstream.Commit(files{"z": "0"})) },
			tree:     files{"z": "0"}, main: files{"z": "0"},
		},
		{
			name: "ref gone", local: files{"a": "2"}, upstream: func(w *world) {
				w.put("other", files{"o": "1"})
				w.upstream.Git("update-ref", "-d", ref)
			},
			tree: files{"a": "2", "b": "1"}, faults: []report.Fault{report.RefDeleted},
		},
	}
}

func TestKeptTree(t *testing.T) {
	for _, row := range keptTrees() {
		t.Run(row.name, func(t *testing.T) { bubble(t, row.test) })
	}
}

func (row keptTree) test(w *world) {
	w.put("main", files{"a": "1", "b": "1"})
	n := w.node()
	n.publish()
	n.remote.set(func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrUnreachable} })
	for path, content := range row.local {
		n.write(path, content)
	}
	n.stop()
	if row.upstream != nil {
		row.upstream(w)
	}
	n.remote.set(func(r *nodeRemote) { r.down = nil })
	n.said = newSaid()
	n.publish()
	n.has(row.tree)
	n.settle(time.Minute)
	n.faultsAre(row.faults...)
	n.stop()
	n.has(row.tree)
	if row.main != nil {
		w.remoteHas("main", row.main)
	} else if w.upstream.Tip(ref) != "" {
		w.t.Error("the ref was made again")
	}
	if row.side != nil {
		w.remoteHas(side, row.side)
	} else if w.upstream.Tip(side) != "" {
		w.t.Error("there is a side branch")
	}
	w.upstream.Git("fsck", "--strict")
	n.remote.git("fsck", "--strict")
}

// Uncommitted writes of a volume that is not armed are left alone.
func TestKeptTreeWithWrites(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.arming = unarmed()
		n.publish()
		n.write("a", "mine")
		n.settle(time.Minute)
		if got := n.figures(); got.Pending != 1 || got.PendingPath != "a" || got.Armed {
			t.Errorf("the figures are %+v, want one pending path, a", got)
		}
		n.stop()
		w.put("main", files{"b": "2"})
		n.publish()
		n.faultsAre(report.UpstreamMoved)
		n.has(files{"a": "mine", "b": "1"})
		n.stop()
		w.do(os.WriteFile(filepath.Join(n.tree(), "a"), []byte("1"), 0o644))
		n.publish()
		n.has(files{"a": "1", "b": "2"})
		n.faultsAre()
		n.stop()
		if got := w.count("main"); got != "2" {
			t.Errorf("%s commits, want those of upstream alone", got)
		}
	})
}

// What the policy never commits does not count as a write, unless upstream changes it.
func TestKeptTreeWithIgnoredFiles(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.arming = unarmed()
		n.arming.Policy.Ignore = []string{"*.log"}
		n.publish()
		n.write("x.log", "mine")
		n.stop()
		w.put("main", files{"a": "2"})
		n.publish()
		n.has(files{"a": "2", "x.log": "mine"})
		n.stop()
		w.put("main", files{"x.log": "theirs", "a": "3"})
		n.publish()
		n.has(files{"a": "2", "x.log": "mine"})
		n.faultsAre(report.UpstreamMoved)
		n.stop()
	})
}

// A tree whose root is another directory is never committed.
func TestReplacedTree(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		w.do(os.Rename(n.tree(), n.tree()+".moved"))
		w.do(os.Mkdir(n.tree(), 0o777))
		n.watch.touch()
		n.settle(time.Minute)
		n.faultsAre(report.SetAside)
		n.running = false
		if err := n.volume.Stop(w.t.Context(), time.Second); !errors.Is(err, writeable.ErrReplaced) {
			t.Errorf("the stop's error is %v, want %v", err, writeable.ErrReplaced)
		}
		n.close()
		if err := n.start().Prepare(w.t.Context()); !errors.Is(err, writeable.ErrReplaced) {
			t.Errorf("the error is %v, want %v", err, writeable.ErrReplaced)
		}
		n.close()
		if got := w.count("main"); got != "1" {
			t.Errorf("%s commits, want 1", got)
		}
	})
}

// A tree that is gone is made again, with what was not pushed.
func TestLostTree(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.remote.set(func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrUnreachable} })
		n.write("a", "2")
		n.stop()
		w.do(os.RemoveAll(n.tree()))
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		w.put("main", files{"b": "1"})
		n.publish()
		n.has(files{"a": "2", "b": "1"})
		n.settle(time.Minute)
		w.remoteHas("main", files{"a": "2", "b": "1"})
		n.stop()
	})
}
