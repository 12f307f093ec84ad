package writeable_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// endAtOnce has the process end without a stop, as a kill does, and start again after what
// happens meanwhile.
func (n *node) endAtOnce(meanwhile func()) {
	n.t.Helper()
	n.volume.Halt()
	n.close()
	meanwhile()
	n.resume()
}

// What the application takes back of modes and empty directories while no process runs is
// taken back in the record, also where the memory is from before the record had it, and where
// there is none.
func TestMetadataTakenBackWhileNothingRuns(t *testing.T) {
	for name, spoil := range map[string]func(n *node){
		"with the memory": func(*node) {},
		"without one":     func(n *node) { n.do(os.Remove(filepath.Join(n.dir, "memory"))) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.put("main", files{"a": "1", "b": "1"})
				n := w.node()
				n.publish()
				n.write("b", "2")
				n.settle(time.Minute)
				n.do(os.MkdirAll(filepath.Join(n.tree(), "spool/deep"), 0o755))
				n.do(os.Mkdir(filepath.Join(n.tree(), "stays"), 0o755))
				n.chmod("a", 0o640)
				n.settle(time.Minute)
				if got := w.record(); !strings.Contains(got, "spool/deep") || !strings.Contains(got, "0640") {
					t.Fatalf("the record is\n%s", got)
				}
				n.endAtOnce(func() {
					n.do(os.Remove(filepath.Join(n.tree(), "spool/deep")))
					n.do(os.Remove(filepath.Join(n.tree(), "spool")))
					n.do(os.Chmod(filepath.Join(n.tree(), "a"), 0o644))
					spoil(n)
				})
				n.settle(time.Minute)
				if got := w.record(); strings.Contains(got, "spool") || strings.Contains(got, "0640") || !strings.Contains(got, "stays") {
					t.Errorf("the record is\n%s", got)
				}
				n.faultsAre()
				n.stop()
			})
		})
	}
}

// A link that no tree can have is neither deleted by a start that reads all of the tree, nor
// overwritten by what it came in place of; and what comes in its place is taken.
func TestLinksThatNoTreeCanHaveAcrossARestart(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "was": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		tip := refsOf(t, w.upstream.Dir)["refs/heads/main"]
		w.upstream.Import("commit refs/heads/main\ncommitter t <t@example.invalid> 1700000000 +0000\ndata 2\nup\nfrom " + tip +
			"\nM 120000 inline empty\ndata 0\n\nM 120000 inline was\ndata 0\n\n")
		n.write("a", "2")
		n.settle(time.Minute)
		n.has(files{"a": "2"})
		n.endAtOnce(func() { n.do(os.Remove(filepath.Join(n.dir, "memory"))) })
		n.settle(2 * time.Minute)
		n.write("a", "3")
		n.settle(time.Minute)
		if got := w.upstream.Git("ls-tree", "main"); strings.Count(got, "120000") != 2 {
			t.Errorf("upstream has\n%s", got)
		}
		w.put("main", files{"empty": "3", "was": "3"})
		n.write("a", "4")
		n.settle(time.Minute)
		n.has(files{"a": "4", "empty": "3", "was": "3"})
		n.faultsAre()
		n.stop()
	})
}
