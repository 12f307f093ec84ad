package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// C17 (a) and (b): a dead FUSE mount on the target.
func TestDeadMountOnTheTarget(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	target := n.Target("h1", 1)

	n.mustPublish("h1", 1)
	n.mustUnpublish("h1", 1)
	rig.MountDead(t, target)
	n.mustUnpublish("h1", 1)
	n.WantMounts(target, 0)
	if exists(target) {
		t.Error("the target is still there")
	}

	rig.MountDead(t, target)
	err := n.Publish(volume("h1"), rig.Pod(1))
	if err == nil {
		t.Fatal("publish says OK with a dead mount on the target")
	}
	if !strings.Contains(err.Error(), "mounted") {
		t.Errorf("the error does not say what is wrong: %v", err)
	}
	n.mustUnpublish("h1", 1)
	n.mustPublish("h1", 1)
	n.WantMounts(target, 1)
	writeFile(t, filepath.Join(target, "f"), "x")
}

// A dead mount on top of the volume's own, as a broken sidecar leaves it.
func TestDeadMountOnTopOfTheVolume(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.mustPublish("h1", 1)
	rig.MountDead(t, n.Target("h1", 1))
	n.WantMounts(n.Target("h1", 1), 2)
	n.mustUnpublish("h1", 1)
	n.WantMounts(n.Target("h1", 1), 0)
	n.mustPublish("h1", 2)
}

// C17 (c): a repeated publish must not unmount, not even for a moment.
func TestReaderNoticesNoRepeatedPublish(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.mustPublish("h1", 1)
	file := filepath.Join(n.Target("h1", 1), "f")
	writeFile(t, file, "x")
	var reads, failures atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := os.ReadFile(file); err != nil {
				failures.Add(1)
			}
			reads.Add(1)
		}
	}()
	for range 5 {
		before := reads.Load()
		rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(1)), codes.OK)
		process.Await(t, "reads", func() bool { return reads.Load() > before })
	}
	close(stop)
	<-stopped
	if failures.Load() > 0 {
		t.Errorf("%d of %d reads failed", failures.Load(), reads.Load())
	}
}
