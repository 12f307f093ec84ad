package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// C08.
func TestSecondPublish(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.start()
	n.mustPublish("h1", 1)
	wantCode(t, n.publish(readOnly(volume("h1")), pod(1)), codes.AlreadyExists)
	if mounts := mountsAt(t, n.plugin.cmd.Process.Pid, n.target("h1", 1)); len(mounts) != 1 || !strings.HasPrefix(mounts[0].Options, "rw") {
		t.Errorf("mounts at the target after the refusal: %+v, want the writable one", mounts)
	}
	err := n.publish(volume("h1"), pod(2))
	wantCode(t, err, codes.FailedPrecondition)
	n.wantMounts(n.target("h1", 2), 0)
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
	n.start()
	const pods = 50
	var mu sync.Mutex
	answers := map[codes.Code]int{}
	var all sync.WaitGroup
	for i := range pods {
		all.Go(func() {
			code := status.Code(n.publish(volume("h1"), pod(i)))
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
		mounts += len(mountsAt(t, n.plugin.cmd.Process.Pid, n.target("h1", i)))
	}
	if mounts != 1 {
		t.Errorf("%d mounts of the volume, want 1", mounts)
	}
}

// C08: a kubelet that cannot make up its mind leaves no lock and no second mount.
func TestPublishAndUnpublishAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.start()
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			call := n.publish
			if i%2 == 1 {
				call = n.unpublish
			}
			if err := call(volume("h1"), pod(1)); err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	all.Wait()
	n.mustUnpublish("h1", 1)
	n.wantMounts(n.target("h1", 1), 0)
	n.mustPublish("h1", 2)
	n.wantMounts(n.target("h1", 2), 1)
}

// Holds are in the store, so neither a new process nor an API server that is
// down lets a second pod in.
func TestHoldSurvivesRestartWithoutAPIServer(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.start()
	n.mustPublish("h1", 1)
	n.takeDown()
	n.plugin.kill()
	n.start()
	err := n.publish(volume("h1"), pod(2))
	wantCode(t, err, codes.FailedPrecondition)
	if !strings.Contains(err.Error(), "pod default/pod-1") {
		t.Errorf("%q does not name the holder", err)
	}
	n.mustPublish("h1", 1)
	n.wantMounts(n.target("h1", 1), 1)
	n.mustPublish("h2", 3)
	n.mustUnpublish("h1", 1)
	n.mustPublish("h1", 2)
}
