package nodetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/gitvolume/internal/driver"
)

// crashIn starts a plugin that ends in native work on the volume, as by a crash of the
// library.
func (n *node) crashIn(handle string) {
	n.T.Helper()
	cmd := n.Command()
	g := newGate(n.T, cmd)
	n.StartUnregistered(cmd)
	wasUnmarked := false // Until then it is the mark of the process before.
	g.reset(n.Plugin, func(int) bool {
		mark, err := os.ReadFile(filepath.Join(n.Store, "volumes", handle, "mark"))
		isMarked := err == nil && strings.HasPrefix(string(mark), "1")
		wasUnmarked = wasUnmarked || !isMarked
		return wasUnmarked && isMarked
	})
	n.Plugin.Wait()
}

// A volume in whose work the process ended twice in a row is left alone, and says so; the
// others go on, its pod can go, and nothing of it is lost.
func TestCrashesInOneVolume(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Put("main", map[string]string{"a": "1"})
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.Start()
	bad, good := n.written("bad", "notes"), n.written("good", "notes")
	badTarget, goodTarget := n.MustPublish(bad, 1), n.MustPublish(good, 2)
	n.Plugin.Stop()
	write(t, badTarget, "bad", "1")
	n.crashIn("bad")
	n.crashIn("bad")
	n.Start()
	n.MustPublish(bad, 1)
	n.MustPublish(good, 2)
	n.AwaitAnswer("/metrics", 200, `git_csi_volume_abnormal{claim="bad",namespace="default",volume="bad"} 1`)
	n.Plugin.AwaitLog("ended 2 times in a row")
	write(t, goodTarget, "good", "1")
	process.Await(t, "the other volume's write to arrive", func() bool { return n.has("good", "1") })
	if n.has("bad", "1") {
		t.Error("the volume is followed all the same")
	}
	n.AwaitAnswer("/metrics", 200, `git_csi_volume_abnormal{claim="good",namespace="default",volume="good"} 0`)
	shows(t, badTarget, "bad", "1")
	n.MustUnpublish(bad, 1)
	n.MustUnpublish(good, 2)
	shows(t, filepath.Join(n.Store, "volumes", "bad", "tree"), "bad", "1")
}
