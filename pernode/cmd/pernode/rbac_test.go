package main

import (
	"testing"

	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// The plugin asks for nothing that the ClusterRole does not grant, and the
// ClusterRole grants nothing that it does not ask for.
func TestTheClusterRoleIsWhatThePluginCalls(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start(sweepSoon...)
	n.mustPublish("h1", 1)
	process.Await(t, "a watch", func() bool { return n.API.Count("watch", "persistentvolumes") > 0 })
	// An Event is looked for and created, and then counted up.
	for _, event := range []string{"pod-2 PerNodeVolumeHeld 1", "pod-2 PerNodeVolumeHeld 2"} {
		rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(2)), codes.FailedPrecondition)
		n.awaitEvents("default", event)
	}
	n.mustUnpublish("h1", 1)
	n.API.DeleteVolume("h1")
	n.awaitRemoval("h1")
	n.Plugin.Stop()

	rig.CompareRole(t, page.Role(t, installPage), n.API.Requests())
}
