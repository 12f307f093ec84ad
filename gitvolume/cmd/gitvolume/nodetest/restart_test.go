package nodetest

import (
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/csitest/leaks"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// A plugin that is replaced goes on with what pods see, and touches no mount.
func TestRestart(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.Start()
	v := n.volume("v")
	target := n.MustPublish(v, 1)
	before := mounts(t, n.KubeletDir)
	n.Plugin.Stop()
	if after := mounts(t, n.KubeletDir); !maps.Equal(after, before) {
		t.Errorf("the stop makes of the mounts %v %v", before, after)
	}
	shows(t, target, "a", "1")
	n.remote.Grow("main", "a", "2")
	n.Start()
	shows(t, target, "a", "2")
	if after := mounts(t, n.KubeletDir); !maps.Equal(after, before) {
		t.Errorf("the start makes of the mounts %v %v", before, after)
	}
	n.MustUnpublish(v, 1)
}

// What the plugin mounts for its own eyes no other namespace sees. In one that outlives it
// this is there once, however often it was killed, and gone when it ended.
func TestTheViewOfTheTreesIsNeverLeft(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start()
	own := leaks.Look(t, leaks.Scope{Namespace: n.Plugin.Pid(), Below: n.Store}).Mounts
	if len(own) != 2 {
		t.Errorf("the plugin mounted %v below its store, want a place of its own and the trees in it", own)
	}
	if seen := mounts(t, n.Store); len(seen) != 0 {
		t.Errorf("the node sees %v", seen)
	}
	n.Plugin.Stop()

	t.Cleanup(func() { mountns.UnmountBelow(t, n.Store) })
	start := func() {
		cmd := n.Command()
		cmd.SysProcAttr.Cloneflags = 0
		n.StartUnregistered(cmd)
		n.Register()
	}
	for range 3 {
		start()
		if now := leaks.Look(t, leaks.Scope{Namespace: os.Getpid(), Below: n.Store}).Mounts; !maps.Equal(now, own) {
			t.Errorf("%v is mounted, want %v", now, own)
		}
		n.Plugin.Kill()
	}
	start()
	n.Plugin.Stop()
	if left := mounts(t, n.Store); len(left) != 0 {
		t.Errorf("the stop leaves %v", left)
	}
}

// publishAll publishes each volume for a pod of its own, all at a time.
func (n *node) publishAll(volumes []kubelet.Volume) {
	n.T.Helper()
	errs := make([]error, len(volumes))
	var group sync.WaitGroup
	for i, v := range volumes {
		group.Go(func() { errs[i] = n.Publish(v, rig.Pod(i)) })
	}
	group.Wait()
	for _, err := range errs {
		rig.WantCode(n.T, err, codes.OK)
	}
}

// A node on which a restart has something to do.
const (
	manyVolumes  = 50
	manyBranches = 5
)

// restartBound is what the plugin may need of a processor until the kubelet has it again, and
// until all that pods see is followed.
// It is not the time that passes, which a busy machine makes as long as it likes.
const restartBound = 5 * time.Second

// A killed plugin is back soon, whatever it showed, and follows all of it again.
func TestKilledWithManyVolumes(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	var volumes []kubelet.Volume
	for i := range manyVolumes {
		branch := fmt.Sprintf("b%d", i%manyBranches)
		if i < manyBranches {
			n.remote.Grow(branch, "a", "1")
		}
		volumes = append(volumes, n.volume(fmt.Sprintf("v%d", i), "ref", branch, "pull", "10m"))
	}
	last := manyVolumes - 1
	volumes[last].Attributes["pull"] = "1s"
	n.Start()
	n.publishAll(volumes)
	before := mounts(t, n.KubeletDir)
	if len(before) < manyVolumes {
		t.Fatalf("there are %d mounts", len(before))
	}
	n.Plugin.Kill()
	for i := range manyBranches - 1 {
		n.remote.Grow(fmt.Sprintf("b%d", i), "a", "2")
	}
	began := time.Now()
	n.Start()
	used := n.Plugin.ProcessorTime()
	t.Logf("the kubelet has it again after %s, of which it worked for %s", time.Since(began), used)
	if used > restartBound && !process.Raced {
		t.Errorf("it worked for %s, want at most %s", used, restartBound)
	}
	if after := mounts(t, n.KubeletDir); !maps.Equal(after, before) {
		t.Errorf("the restart makes of the mounts %v %v", before, after)
	}
	n.remote.Grow(volumes[last].Attributes["ref"], "a", "2")
	for i, v := range volumes {
		if i%manyBranches != last%manyBranches || i == last {
			shows(t, n.Target(v.PV, i), "a", "2")
		}
	}
	if used := n.Plugin.ProcessorTime(); used > restartBound && !process.Raced {
		t.Errorf("until all volumes were followed it worked for %s, want at most %s", used, restartBound)
	}
	for i, v := range volumes {
		n.MustUnpublish(v, i)
	}
	if after := mounts(t, n.KubeletDir); len(after) != len(before)-manyVolumes {
		t.Errorf("after the unpublishes there are the mounts %v", after)
	}
}
