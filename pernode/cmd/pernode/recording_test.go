package main

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// recorded compares the node's scrape with a recording.
func (n *node) recorded(name string) {
	n.T.Helper()
	_, scrape := n.Get("/metrics")
	page.CompareRecording(n.T, "testdata/"+name+".prom", scrape, nil)
}

// onDisk has the store on a disk of its own, of so many bytes.
func (n *node) onDisk(size string) {
	n.T.Helper()
	mountns.Require(n.T)
	if err := os.MkdirAll(n.Store, 0o700); err != nil {
		n.T.Fatal(err)
	}
	if err := unix.Mount("none", n.Store, "tmpfs", 0, "mode=700,size="+size); err != nil {
		n.T.Fatal(err)
	}
	n.T.Cleanup(func() { _ = unix.Unmount(n.Store, unix.MNT_DETACH) })
}

// A node on which everything is well, and has happened once.
func TestRecordingOfAHealthyNode(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.onDisk("16m")
	n.Start(sweepSoon...)
	n.mustPublish("h1", 1)
	n.leaveCopy(volume("h2"))
	n.API.DeleteVolume("h2")
	n.awaitRemoval("h2")
	process.Await(t, "the copy to be measured", func() bool { return n.Scrape()["per_node_copy_bytes"] != nil })
	n.awaitSweeps(1)
	n.recorded("healthy")
}

// A node with each fault that has a series.
func TestRecordingOfAFaultyNode(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2", "h3")
	n.onDisk("16m")
	n.Start(sweepSoon...)
	n.leaveCopy(volume("h3"))
	n.mustPublish("h1", 1)
	n.awaitSweeps(1)
	if err := os.WriteFile(filepath.Join(n.Target("h1", 1), "f"), make([]byte, 15<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(2)), codes.FailedPrecondition)
	n.blockTarget("h2", 3)
	if n.Publish(volume("h2"), rig.Pod(3)) == nil {
		t.Fatal("a publish onto a file says OK")
	}
	n.API.Inject(apiserver.Fault{Verb: "create", Resource: "events", Do: apiserver.Refuse(403)})
	rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(4)), codes.FailedPrecondition)
	process.Await(t, "an Event to be dropped", func() bool { return n.Figure("csi_events_dropped_total") > 0 })
	process.Await(t, "the copy to be measured", func() bool { return n.Scrape()["per_node_copy_bytes"] != nil })
	n.API.SetCluster("cluster-2") // Another one answers: nothing may be removed.
	n.API.DeleteVolume("h3")
	n.awaitFailures(3)
	n.recorded("faulty")
}
