package main

import (
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/rig"
)

// blockTarget puts a file where the volume of handle should be mounted for the
// i-th pod.
func (n *node) blockTarget(handle string, i int) {
	n.T.Helper()
	target := n.Target(handle, i)
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		n.T.Fatal(err)
	}
	writeFile(n.T, target, "x")
}

// C15: a mount that keeps failing is one Event, whatever happens to it.
func TestRepeatedFailureIsOneEvent(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.blockTarget("h1", 1)
	first := status.Convert(n.Publish(volume("h1"), rig.Pod(1)))
	for range 29 {
		again := status.Convert(n.Publish(volume("h1"), rig.Pod(1)))
		if again.Code() == codes.OK || again.Code() != first.Code() || again.Message() != first.Message() {
			t.Fatalf("answer %v, the first was %v", again, first)
		}
	}
	events := n.awaitEvents("default", "pod-1 PerNodeMountFailed 30")
	if events[0].Message != first.Message() {
		t.Errorf("the Event says %q, the call %q", events[0].Message, first.Message())
	}
	n.WantMounts(n.Target("h1", 1), 0)

	n.API.DeleteEvent("default", events[0].Name)
	for range 2 {
		rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(1)), first.Code())
	}
	events = n.awaitEvents("default", "pod-1 PerNodeMountFailed 2")

	n.Plugin.Stop()
	n.Start()
	rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(1)), first.Code())
	counted := n.awaitEvents("default", "pod-1 PerNodeMountFailed 3")
	if counted[0].Name != events[0].Name {
		t.Errorf("the plugin counts up Event %q after its restart, want %q", counted[0].Name, events[0].Name)
	}
	if left := names(t, filepath.Join(n.Store, "holds")); left != nil {
		t.Errorf("a failed publish left holds %q", left)
	}
	n.mustPublish("h1", 2)
}

// C15: Events are per pod and per reason.
func TestEventsOfTwoPodsAndTwoReasons(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	n.Start()
	n.mustPublish("h1", 1)
	n.blockTarget("h2", 2)
	other := rig.Pod(3)
	other.Namespace = "other"
	for range 3 {
		rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(2)), codes.FailedPrecondition)
		if err := n.Publish(volume("h2"), rig.Pod(2)); err == nil {
			t.Fatal("a publish onto a file says OK")
		}
		rig.WantCode(t, n.Publish(volume("h1"), other), codes.FailedPrecondition)
	}
	n.awaitEvents("default", "pod-2 PerNodeVolumeHeld 3", "pod-2 PerNodeMountFailed 3")
	n.awaitEvents("other", "pod-3 PerNodeVolumeHeld 3")
}

// C13: a mount that the kubelet cannot see is worse than none.
func TestPrivateKubeletDir(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.StartUnregistered(inPrivateNamespace(n.Command()))
	n.Register()
	err := n.Publish(volume("h1"), rig.Pod(1))
	if err == nil {
		t.Fatal("publish says OK, and the kubelet sees no mount")
	}
	n.WantMounts(n.Target("h1", 1), 0)
	event := n.awaitEvents("default", "pod-1 PerNodeMountFailed 1")[0]
	for _, text := range []string{err.Error(), event.Message} {
		wantWords(t, text, "propagation")
	}
}
