package writeable_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/writeable"
)

func (n *node) chmod(path string, mode os.FileMode) {
	n.t.Helper()
	n.do(os.Chmod(filepath.Join(n.tree(), path), mode))
	n.watch.touch()
}

func (n *node) modeIs(path string, want os.FileMode) {
	n.t.Helper()
	info, err := os.Lstat(filepath.Join(n.tree(), path))
	n.do(err)
	if got := info.Mode() & (os.ModePerm | os.ModeSetgid | os.ModeSticky); got != want {
		n.t.Errorf("%s has mode %v, want %v", path, got, want)
	}
}

// restored is another node's volume of the same ref.
func (w *world) restored() *node {
	w.t.Helper()
	other := w.nodeOf("copy", "default/copy")
	other.publish()
	return other
}

func (w *world) record() string {
	w.t.Helper()
	return w.upstream.Git("show", history.MetadataRef+":refs%2Fheads%2Fmain")
}

func TestModesAndEmptyDirectories(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.write("a", "2")
		n.chmod("a", 0o600)
		n.do(os.Mkdir(filepath.Join(n.tree(), "spool"), 0o700))
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "2", "b": "1"})
		other := w.restored()
		other.modeIs("a", 0o600)
		other.modeIs("spool", 0o700)
		other.settle(10 * time.Minute)
		other.stop()

		// The mode alone changes, and nothing of the branch.
		n.chmod("b", 0o640)
		n.settle(10 * time.Second)
		if got := w.count("main"); got != "2" {
			t.Errorf("%s commits on the branch, want 2", got)
		}
		if got := w.record(); !strings.Contains(got, `file 0640 - - "b"`) {
			t.Errorf("the record is\n%s", got)
		}
		n.faultsAre()
		n.stop()
		if got := w.upstream.Git("rev-list", "--count", history.MetadataRef); got != "2" {
			t.Errorf("%s records, want 2: the other volume changed nothing", got)
		}
	})
}

// A mode or an empty directory that no event announces is found by a scan, and recorded
// while the pod runs.
func TestSilentModes(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.do(os.Chmod(filepath.Join(n.tree(), "a"), 0o640))
		n.settle(5*time.Minute + 10*time.Second)
		if got := w.record(); !strings.Contains(got, `file 0640 - - "a"`) {
			t.Errorf("the record is\n%s", got)
		}
		n.do(os.Mkdir(filepath.Join(n.tree(), "spool"), 0o700))
		n.settle(5*time.Minute + 10*time.Second)
		if got := w.record(); !strings.Contains(got, `"spool"`) {
			t.Errorf("the record is\n%s", got)
		}
		n.settle(time.Hour)
		if got := w.upstream.Git("rev-list", "--count", history.MetadataRef); got != "2" {
			t.Errorf("%s records, want one a change", got)
		}
		n.faultsAre()
		n.stop()
	})
}

// What the application changed of modes while there was no driver is recorded by the next
// one, under the pod.
func TestModesWhileAway(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.volume.Halt()
		n.close()
		n.do(os.Chmod(filepath.Join(n.tree(), "a"), 0o640))
		n.resume()
		n.settle(10 * time.Second)
		if got := w.record(); !strings.Contains(got, `file 0640 - - "a"`) {
			t.Errorf("the record is\n%s", got)
		}
		n.stop()
	})
}

// Two volumes of one ref keep each other's modes, and each gets those of the other.
func TestModesOfTwoWriters(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		one, two := w.node(), w.nodeOf("two", "default/two")
		one.publish()
		two.publish()
		one.settle(time.Minute)
		for round := range 5 {
			one.write("a", fmt.Sprint("one", round))
			one.chmod("a", os.FileMode(0o600+round%2*0o40))
			two.write("b", fmt.Sprint("two", round))
			two.chmod("b", os.FileMode(0o604+round%2*0o20))
			one.settle(20 * time.Second)
		}
		one.settle(time.Minute)
		one.faultsAre()
		two.faultsAre()
		one.stop()
		two.stop()
		third := w.restored()
		third.modeIs("a", 0o600)
		third.modeIs("b", 0o604)
		third.stop()
		if refs := w.upstream.Git("for-each-ref", "--format=%(refname)", "refs/heads"); refs != ref {
			t.Errorf("the branches are %q, want main alone", refs)
		}
	})
}

// Of a root that is not the volume's own nothing is recorded, and it is left as it is when
// another volume's record has it.
func TestForeignRoot(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		other, n := w.nodeOf("other", "default/other"), w.node()
		n.change = func(s *writeable.Settings) { s.Root.Mode, s.ForeignRoot = 0o750, true }
		n.publish()
		n.chmod(".", 0o700)
		n.chmod("a", 0o600)
		n.settle(time.Minute)
		n.stop()
		if got := w.record(); strings.Contains(got, "dir") || !strings.Contains(got, `"a"`) {
			t.Errorf("the record is\n%s", got)
		}

		other.publish()
		other.chmod(".", 0o711)
		other.settle(time.Minute)
		other.stop()
		recorded := w.record()
		if !strings.Contains(recorded, "0711") {
			t.Errorf("the record is\n%s", recorded)
		}

		n.publish()
		n.write("b", "1")
		n.settle(time.Minute)
		n.modeIs(".", 0o700)
		if got := w.record(); got != recorded {
			t.Errorf("the record is\n%s\nand was\n%s", got, recorded)
		}
		third := w.restored()
		third.modeIs(".", 0o711)
		third.modeIs("a", 0o600)
		third.stop()
		n.stop()
	})
}

// Another writer's modes come with its files.
func TestModesOfARebase(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		one, two := w.node(), w.nodeOf("two", "default/two")
		one.publish()
		two.publish()
		one.settle(time.Minute)
		two.write("c", "1")
		two.chmod("c", 0o600)
		two.chmod("b", 0o640)
		two.settle(10 * time.Second)
		one.write("a", "2")
		one.settle(10 * time.Second)
		one.modeIs("c", 0o600)
		one.modeIs("b", 0o640)
		one.settle(time.Hour)
		if got := w.record(); strings.Count(got, "\n") != 2 {
			t.Errorf("the record is\n%s\nwant two entries", got)
		}
		one.stop()
		two.stop()
	})
}

// C47: of two refs that go together one is refused.
func TestRefusedRecord(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.decline = map[string]string{history.MetadataRef: `"no"`} })
		n.write("a", "2")
		n.chmod("a", 0o640)
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "2"})
		n.faultsAre(report.MetadataRefused)
		pushes := n.remote.pushes
		n.settle(30 * time.Minute)
		if n.remote.pushes != pushes {
			t.Errorf("the record was offered again %d times within half an hour", n.remote.pushes-pushes)
		}
		n.remote.set(func(r *nodeRemote) { r.decline = nil })
		n.settle(31 * time.Minute)
		n.faultsAre()
		if got := w.record(); !strings.Contains(got, `"a"`) {
			t.Errorf("the record is\n%s", got)
		}
		n.stop()
	})
}

// C47: the metadata ref is gone, or something else.
func TestMetadataRefOfOthers(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"gone":      func(w *world) { w.upstream.Git("update-ref", "-d", history.MetadataRef) },
		"unrelated": func(w *world) { w.upstream.SetRef(history.MetadataRef, w.upstream.Commit(files{"x": "1"})) },
		"garbage": func(w *world) {
			w.upstream.SetRef(history.MetadataRef, w.upstream.Commit(files{"refs%2Fheads%2Fmain": "garbage"}))
		},
		"a blob": func(w *world) {
			w.upstream.SetRef(history.MetadataRef, w.upstream.Git("rev-parse", "main:a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.put("main", files{"a": "1"})
				n := w.node()
				n.publish()
				n.write("b", "1")
				n.chmod("b", 0o640)
				n.settle(10 * time.Second)
				n.stop()
				spoil(w)
				other := w.restored()
				other.has(files{"a": "1", "b": "1"})
				other.settle(10 * time.Second)
				other.write("c", "1")
				other.chmod("c", 0o600)
				other.settle(10 * time.Second)
				w.remoteHas("main", files{"a": "1", "b": "1", "c": "1"})
				if name != "a blob" { // The remote of these tests replaces nothing by force.
					if got := w.record(); !strings.Contains(got, `file 0600 - - "c"`) {
						t.Errorf("the record is\n%s", got)
					}
				}
				other.stop()
			})
		})
	}
}

// A record of a newer driver is neither used nor replaced.
func TestNewerRecord(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		newer := w.upstream.Commit(files{"refs%2Fheads%2Fmain": "git-csi-metadata 99\nwhatever\n"})
		w.upstream.SetRef(history.MetadataRef, newer)
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.write("a", "2")
		n.chmod("a", 0o600)
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "2"})
		if got := w.upstream.Tip(history.MetadataRef); got != newer {
			t.Errorf("the record was replaced by %s", got)
		}
		n.faultsAre(report.MetadataUnreadable)
		n.stop()
	})
}

// A class that keeps no metadata makes no records and brings none back.
func TestWithoutMetadata(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.arming = armed(files{"metadata": "false"})
		n.publish()
		n.write("a", "2")
		n.chmod("a", 0o600)
		n.settle(10 * time.Second)
		w.put("main", files{"b": "1"})
		n.write("a", "3")
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "3", "b": "1"})
		if w.upstream.Tip(history.MetadataRef) != "" {
			t.Error("there is a record")
		}
		n.stop()
	})
}

// An authentication failure waits for another credential, and is pushed with that at once.
func TestRotatedCredential(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrAuthentication} })
		n.write("a", "2")
		n.settle(10 * time.Minute)
		n.faultsAre(report.PushFailed)
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		n.volume.TakeCredential()
		n.settle(0)
		w.remoteHas("main", files{"a": "2"})
		n.faultsAre()
		n.stop()
	})
}
