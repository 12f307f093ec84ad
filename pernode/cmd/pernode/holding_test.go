package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/rig"
)

// C08.
func TestSecondPublish(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.mustPublish("h1", 1)
	rig.WantCode(t, n.Publish(readOnly(volume("h1")), rig.Pod(1)), codes.AlreadyExists)
	if mounts := rig.MountsAt(t, n.Plugin.Pid(), n.Target("h1", 1)); len(mounts) != 1 || !strings.HasPrefix(mounts[0].Options, "rw") {
		t.Errorf("mounts at the target after the refusal: %+v, want the writable one", mounts)
	}
	err := n.Publish(volume("h1"), rig.Pod(2))
	rig.WantCode(t, err, codes.FailedPrecondition)
	n.WantMounts(n.Target("h1", 2), 0)
	events := n.awaitEvents("default", "pod-1 PerNodeMountFailed 1", "pod-2 PerNodeVolumeHeld 1")
	for _, text := range []string{err.Error(), events[1].Message} {
		if !strings.Contains(text, "pod default/pod-1") {
			t.Errorf("%q does not name the holder", text)
		}
	}
	n.mustUnpublish("h1", 1)
	n.mustPublish("h1", 2)
	n.mustUnpublish("h1", 2)
}

// C08: racing publishes.
func TestManyPodsPublishAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	const pods = 50
	var mu sync.Mutex
	answers := map[codes.Code]int{}
	var all sync.WaitGroup
	for i := range pods {
		all.Go(func() {
			code := status.Code(n.Publish(volume("h1"), rig.Pod(i)))
			mu.Lock()
			defer mu.Unlock()
			answers[code]++
		})
	}
	all.Wait()
	if want := map[codes.Code]int{codes.OK: 1, codes.FailedPrecondition: pods - 1}; fmt.Sprint(answers) != fmt.Sprint(want) {
		t.Errorf("answers %v, want %v", answers, want)
	}
	mounts := 0
	for i := range pods {
		mounts += len(rig.MountsAt(t, n.Plugin.Pid(), n.Target("h1", i)))
	}
	if mounts != 1 {
		t.Errorf("%d mounts of the volume, want 1", mounts)
	}
}

// C08: a kubelet that cannot make up its mind leaves no lock and no second mount.
func TestPublishAndUnpublishAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			call := n.Publish
			if i%2 == 1 {
				call = n.Unpublish
			}
			if err := call(volume("h1"), rig.Pod(1)); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	all.Wait()
	n.mustUnpublish("h1", 1)
	n.WantMounts(n.Target("h1", 1), 0)
	n.mustPublish("h1", 2)
	n.WantMounts(n.Target("h1", 2), 1)
}

// Holds are in the store, so neither a new process nor an API server that is
// down lets a second pod in.
func TestHoldSurvivesRestartWithoutAPIServer(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.Start()
	n.mustPublish("h1", 1)
	n.TakeDown()
	n.Plugin.Kill()
	n.Start()
	err := n.Publish(volume("h1"), rig.Pod(2))
	rig.WantCode(t, err, codes.FailedPrecondition)
	if !strings.Contains(err.Error(), "pod default/pod-1") {
		t.Errorf("%q does not name the holder", err)
	}
	n.mustPublish("h1", 1)
	n.WantMounts(n.Target("h1", 1), 1)
	n.mustPublish("h2", 3)
	n.mustUnpublish("h1", 1)
	n.mustPublish("h1", 2)
}
