//go:build e2e

package pernode

import (
	"errors"
	"testing"

	"liken.sh/e2e/cluster"
)

// The tests of this file take away what the tests of every driver need. They come first,
// while those of another driver wait for nothing that takes long: Go runs tests in the
// order of their files' names.

// TestKubeletRestarts under a pod that runs.
func TestKubeletRestarts(t *testing.T) {
	kube.Alone(t)
	s := newSpace(t)
	volume, other := s.volume(), s.volume()
	node := kube.Nodes[0]
	s.pod("witness", node, volume, ticking)
	s.Runs("witness", cluster.Soon)
	before := s.Get("witness")
	kube.KillKubelet(t, node)
	s.pod("next", node, other)
	s.Runs("next", cluster.Soon)
	perNode.Listed(t)
	s.ticks("witness")
	s.Unharmed(before)
	s.Delete("pod", "witness")
	if targets := targetsOf(t, node, volume); len(targets) != 0 {
		t.Errorf("the pod is gone, and the copy still mounted at %q", targets)
	}
}

// TestNodeReboots with a pod that stays the node's, and one that is force-deleted
// while the node is down.
func TestNodeReboots(t *testing.T) {
	kube.Alone(t)
	s := newSpace(t)
	node := kube.Nodes[1]
	stays, lost := s.volume(), s.volume()
	t.Cleanup(func() { kube.StartNode(t, node) })
	s.pod("stays", node, stays)
	s.pod("lost", node, lost)
	for _, pod := range []string{"stays", "lost"} {
		s.Runs(pod, cluster.Soon)
		s.Exec(pod, "echo "+pod+" > /data/file; sync")
	}
	before := s.Get("stays")
	kube.StopNode(t, node)
	s.Delete("pod", "lost", "--force", "--grace-period=0")
	kube.StartNode(t, node)
	s.pod("found", node, lost)
	s.Runs("found", cluster.Patient)
	s.Reads("found", "/data/file", "lost")
	cluster.Eventually(t, cluster.Patient, "the pod was started again", func() error {
		is := s.Get("stays")
		if is.UID != before.UID {
			return errors.New("it was replaced")
		}
		if is.Status.ContainerStatuses[0].RestartCount == 0 {
			return errors.New("it was not")
		}
		return kube.Ready(t.Context(), s.Name, "stays")
	})
	s.Reads("stays", "/data/file", "stays")
	perNode.PluginRuns(t, node)
}
