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
// library, and returns the mark it leaves. Another thread may have done the step that it was
// killed before, and the work have ended well in that moment: then it is no mark of an end.
func (n *node) crashIn(handle string) (mark string) {
	n.T.Helper()
	file := filepath.Join(n.Store, "volumes", handle, "mark")
	cmd := n.Command()
	g := newGate(n.T, cmd)
	n.StartUnregistered(cmd)
	wasUnmarked := false // Until then it is the mark of the process before.
	g.reset(n.Plugin, func(int) bool {
		mark, err := os.ReadFile(file)
		isMarked := err == nil && strings.HasPrefix(string(mark), "1")
		wasUnmarked = wasUnmarked || !isMarked
		return wasUnmarked && isMarked
	})
	n.Plugin.Wait()
	left, err := os.ReadFile(file)
	if err != nil {
		n.T.Fatal(err)
	}
	return strings.TrimSpace(string(left))
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
	process.Await(t, "two ends in a row", func() bool {
		write(t, badTarget, "bad", "1")
		return n.crashIn("bad") == "1 1" // In work, after one end.
	})
	write(t, badTarget, "bad", "2")
	n.Start()
	n.MustPublish(bad, 1)
	n.MustPublish(good, 2)
	n.AwaitAnswer("/metrics", 200, `git_csi_volume_abnormal{claim="bad",namespace="default",volume="bad"} 1`)
	n.Plugin.AwaitLog("ended 2 times in a row")
	write(t, goodTarget, "good", "1")
	process.Await(t, "the other volume's write to arrive", func() bool { return n.has("good", "1") })
	if n.has("bad", "2") {
		t.Error("the volume is followed all the same")
	}
	n.AwaitAnswer("/metrics", 200, `git_csi_volume_abnormal{claim="good",namespace="default",volume="good"} 0`)
	shows(t, badTarget, "bad", "2")
	n.MustUnpublish(bad, 1)
	n.MustUnpublish(good, 2)
	shows(t, filepath.Join(n.Store, "volumes", "bad", "tree"), "bad", "2")
}
