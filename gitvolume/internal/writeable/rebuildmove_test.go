package writeable_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/writeable"
)

// endInMove has the process end, once that is so, before a move of the tree counts as
// finished.
func (n *node) endInMove(so bool) (once *bool) {
	n.step = func(s writeable.Step) {
		if so && s == "keep the position" && (&keeper{dir: n.dir}).position(n.t).Move != nil {
			runtime.Goexit()
		}
	}
	return &so
}

// unfinished writes a file as a move that was interrupted leaves it beside that of a name.
func (n *node) unfinished(state, name, content string) {
	n.t.Helper()
	move := (&keeper{dir: n.dir}).position(n.t).Move
	if move == nil {
		n.t.Fatal("no move is unfinished")
	}
	sum := sha256.Sum256([]byte(name))
	beside := ".gitvolume-" + move.Token + "-" + state + hex.EncodeToString(sum[:16])
	n.do(os.WriteFile(filepath.Join(n.tree(), beside), []byte(content), 0o644))
}

// The repository is lost while the tree is between two commits. Of what the move left
// there nothing is committed for the application's.
func TestLostRepositoryInAMove(t *testing.T) {
	const base, mine, theirs, merged = "1\n2\n3\n4\n5\n", "mine\n2\n3\n4\n5\n", "1\n2\n3\n4\ntheirs\n", "mine\n2\n3\n4\ntheirs\n"
	bubble(t, func(w *world) {
		w.put("main", files{"moved": "1", "staged": "1", "both": base})
		n := w.node()
		moves := n.endInMove(false)
		n.publish()
		n.settle(time.Minute)
		*moves = true
		w.put("main", files{"moved": "2", "staged": "2", "both": theirs, "new": "2"})
		n.write("own", "1")
		n.write("both", mine)
		n.settle(10 * time.Second)
		want := files{"moved": "2", "staged": "2", "both": merged, "own": "1", "new": "2"}
		n.has(want)
		// That is where it may have ended as well.
		n.unfinished("w", "new", "half of")
		n.unfinished("x", "moved", "1")
		n.writeUnseen("staged", "1")
		n.unfinished("x", "staged", "2")
		n.do(os.Remove(filepath.Join(n.tree(), "new")))
		n.unfinished("x", "new", "2")
		n.step, n.running = nil, false
		n.close()
		n.loseRepository()
		n.settle(time.Minute)
		n.has(want)
		w.remoteHas("main", want)
		n.faultsAre()
		n.stop()
	})
}

// What the application wrote as the move came to its file, and the move took out and did
// not put back, is in its place again.
func TestLostRepositoryInAMoveOverAWrite(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		moves := n.endInMove(false)
		n.publish()
		n.settle(time.Minute)
		*moves = true
		w.put("main", files{"a": "2"})
		n.write("b", "2")
		n.settle(10 * time.Second)
		n.has(files{"a": "2", "b": "2"})
		n.unfinished("x", "a", "mine")
		n.step, n.running = nil, false
		n.close()
		n.loseRepository()
		n.settle(time.Minute)
		n.has(files{"a": "mine", "b": "2"})
		w.remoteHas(side, files{"a": "mine", "b": "2"})
		w.remoteHas("main", files{"a": "2", "b": "1"})
		n.faultsAre(report.Diverged)
		n.stop()
	})
}

// The repository is lost while the tree is made: no file that is not there yet counts as
// one that the application removed.
func TestLostRepositoryOfATreeToBe(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.endInMove(true)
		n.publishOrCrash()
		n.do(os.Remove(filepath.Join(n.tree(), "a")))
		n.unfinished("x", "a", "1")
		n.step = nil
		n.close()
		w.put("main", files{"b": "2"})
		n.loseRepository()
		n.settle(time.Minute)
		n.has(files{"a": "1", "b": "2"})
		w.remoteHas("main", files{"a": "1", "b": "2"})
		n.faultsAre()
		n.stop()
	})
}
