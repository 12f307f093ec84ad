package writeable_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/report"
)

// deep makes files with modes of their own, so far down and of such names that no record
// has room for all of them.
func (n *node) deep() {
	n.t.Helper()
	const levels = 60
	name := strings.Repeat("\x01", 250) // Each byte takes four of the record's.
	at, err := os.OpenRoot(n.tree())
	n.do(err)
	for range levels {
		n.do(at.Mkdir(name, 0o755))
		below, err := at.OpenRoot(name)
		n.do(err)
		n.do(at.Close())
		at = below
	}
	for i := range metadata.MaxSize/(levels*4*len(name)) + 1 {
		file, err := at.OpenFile(fmt.Sprint(i), os.O_CREATE|os.O_WRONLY, 0o600)
		n.do(err)
		n.do(file.Close())
	}
	n.do(at.Close())
	n.watch.touch()
}

func (n *node) removeDeep() {
	n.t.Helper()
	tops, err := filepath.Glob(filepath.Join(n.tree(), "\x01*"))
	n.do(err)
	for _, top := range tops {
		n.do(os.RemoveAll(top))
	}
	n.watch.touch()
}

// shows expects a file of the remote's branch to have that content.
func (w *world) shows(path, content string) {
	w.t.Helper()
	if got := w.upstream.Git("show", "main:"+path); got != content {
		w.t.Errorf("%s is %q on the remote, want %q", path, got, content)
	}
}

// recorded expects the remote's record to have an entry for each of these files, and for
// none else.
func (w *world) recorded(want ...string) {
	w.t.Helper()
	record := w.record()
	for _, path := range want {
		if !strings.Contains(record, fmt.Sprintf("%q", path)) {
			w.t.Errorf("the record has nothing of %s", path)
		}
	}
	if got := strings.Count(record, "\n"); got != len(want) {
		w.t.Errorf("the record has %d entries, want those of %q:\n%.1000s", got, want, record)
	}
}

// A record that grows too large stays as it was, and the branch goes on: through a
// restart, beside another writer of the record, and until the record fits again. What the
// written record lacks meanwhile, as an empty directory, stays in the tree.
func TestRecordTooLarge(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n, other := w.node(), w.nodeOf("other", "default/other")
		n.publish()
		other.publish()
		n.chmod("a", 0o600)
		n.settle(time.Minute)
		w.recorded("a")

		n.deep()
		n.do(os.Mkdir(filepath.Join(n.tree(), "spool"), 0o750))
		n.write("c", "1")
		n.chmod("c", 0o640)
		n.settle(20 * time.Second)
		w.shows("c", "1")
		n.faultsAre(report.MetadataTooLarge)
		w.recorded("a")

		other.write("b", "2")
		other.chmod("b", 0o640)
		other.settle(20 * time.Second)
		w.recorded("a", "b")
		n.write("c", "2")
		n.settle(20 * time.Second)
		w.shows("c", "2")
		n.modeIs("b", 0o640)
		n.modeIs("c", 0o640)
		n.modeIs("spool", 0o750)
		n.faultsAre(report.MetadataTooLarge)
		w.recorded("a", "b")

		n.stop()
		n.publish()
		n.write("c", "3")
		n.settle(20 * time.Second)
		w.shows("c", "3")
		n.modeIs("a", 0o600)
		n.modeIs("c", 0o640)
		n.faultsAre(report.MetadataTooLarge)

		n.removeDeep()
		n.settle(20 * time.Second)
		w.recorded("a", "b", "c", "spool")
		n.faultsAre()
		n.stop()
		other.stop()
	})
}

// What changed while the class kept no metadata is recorded once it does, in the same
// process or in the next.
func TestMetadataTurnedOn(t *testing.T) {
	for name, restarts := range map[string]bool{"at once": false, "with a restart": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.put("main", files{"a": "1", "b": "1"})
				n := w.node()
				n.publish()
				n.chmod("a", 0o600)
				n.settle(time.Minute)
				n.arming = armed(files{"metadata": "false"})
				n.volume.Arm(n.arming)
				n.settle(time.Minute)
				n.chmod("b", 0o640)
				n.write("a", "2")
				n.settle(time.Minute)
				w.shows("a", "2")
				w.recorded("a")
				n.arming = armed(nil)
				if restarts {
					n.stop()
					n.publish()
				} else {
					n.volume.Arm(n.arming)
				}
				n.settle(time.Minute)
				w.recorded("a", "b")
				n.modeIs("b", 0o640)
				n.faultsAre()
				n.stop()
			})
		})
	}
}
