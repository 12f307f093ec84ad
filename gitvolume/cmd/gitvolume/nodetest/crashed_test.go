package nodetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/driver"
)

// crashIn starts a plugin that ends in native work on the volume, as by a crash of the
// library.
func (n *node) crashIn(handle string) {
	n.t.Helper()
	cmd := n.command(n.flags()...)
	g := newGate(n.t, cmd)
	n.plugin = startProcess(n.t, cmd)
	wasUnmarked := false // Until then it is the mark of the process before.
	g.reset(cmd.Process, func(int) bool {
		mark, err := os.ReadFile(filepath.Join(n.store, "volumes", handle, "mark"))
		isMarked := err == nil && strings.HasPrefix(string(mark), "1")
		wasUnmarked = wasUnmarked || !isMarked
		return wasUnmarked && isMarked
	})
	n.plugin.awaitEnd()
}

// A volume in whose work the process ended twice in a row is left alone, and says so; the
// others go on, its pod can go, and nothing of it is lost.
func TestCrashesInOneVolume(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Put("main", map[string]string{"a": "1"})
	n.api.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.start()
	bad, good := n.written("bad", "notes"), n.written("good", "notes")
	badTarget, goodTarget := n.mustPublish(bad, 1), n.mustPublish(good, 2)
	n.plugin.stop()
	write(t, badTarget, "bad", "1")
	n.crashIn("bad")
	n.crashIn("bad")
	n.start()
	n.mustPublish(bad, 1)
	n.mustPublish(good, 2)
	n.awaitAnswer("/metrics", 200, `git_csi_volume_abnormal{claim="bad",namespace="default",volume="bad"} 1`)
	n.plugin.awaitLog("ended 2 times in a row")
	write(t, goodTarget, "good", "1")
	await(t, "the other volume's write to arrive", func() bool { return n.has("good", "1") })
	if n.has("bad", "1") {
		t.Error("the volume is followed all the same")
	}
	n.awaitAnswer("/metrics", 200, `git_csi_volume_abnormal{claim="good",namespace="default",volume="good"} 0`)
	shows(t, badTarget, "bad", "1")
	n.mustUnpublish(bad, 1)
	n.mustUnpublish(good, 2)
	shows(t, filepath.Join(n.store, "volumes", "bad", "tree"), "bad", "1")
}
