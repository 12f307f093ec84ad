package nodetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/gitvolume/internal/driver"
)

// crashIn starts a plugin that ends in native work on the volume, as by a crash of the
// library: it is killed instead of noting that the work ended well. It returns the mark that
// is left.
func (n *node) crashIn(handle string) (mark string) {
	n.T.Helper()
	file := filepath.Join(n.Store, "volumes", handle, "mark")
	cmd := n.Command()
	g := gate.New(n.T, cmd, unix.SYS_PWRITE64)
	n.StartUnregistered(cmd)
	g.Set(func(c gate.Call) syscall.Errno {
		mark, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(string(mark), "1") || !slices.Equal(c.Paths(), []string{file}) {
			return 0
		}
		n.Plugin.Signal(unix.SIGKILL)
		return unix.EIO // The kill may come too late to stop the call.
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
	write(t, badTarget, "bad", "1")
	for _, want := range []string{"1", "1 1"} { // In work, after no end and one.
		if mark, _ := strings.CutSuffix(n.crashIn("bad"), " 0"); mark != want {
			t.Fatalf("the mark is %q, want %q", mark, want)
		}
	}
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
