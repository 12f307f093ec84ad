//go:build e2e

package gitvolume

import (
	"errors"
	"testing"

	"liken.sh/e2e/cluster"
)

// What takes a node away comes first, while the tests of another driver wait for nothing
// that takes long: Go runs tests in the order of their files' names.

// TestNodeReboots with pods that stay the node's: their volumes are there again, at what
// upstream has by then.
func TestNodeReboots(t *testing.T) {
	kube.Alone(t)
	s := newSpace(t)
	node := kube.Nodes[1]
	s.Commit(t, "public", "main", "file", "one")
	s.Commit(t, "private", "main", "file", "one")
	s.secret("token", s.TokenSecret())
	claim := s.claim("token", attributes(s.HTTPS("private"), "pull", often))
	t.Cleanup(func() { kube.StartNode(t, node) })
	s.Start("inline", cluster.PodSpec(node, inline("", attributes(s.HTTP("public"), "pull", often))))
	s.Start("claim", cluster.PodSpec(node, readOnly(claim)))
	pods := []string{"inline", "claim"}
	for _, pod := range pods {
		s.Runs(pod, cluster.Patient)
		s.Reads(pod, "/data/file", "one")
	}
	kube.StopNode(t, node)
	s.Commit(t, "public", "main", "file", "two")
	s.Commit(t, "private", "main", "file", "two")
	kube.StartNode(t, node)
	for _, pod := range pods {
		cluster.Eventually(t, cluster.Patient, "pod "+pod+" was started again", func() error {
			is := s.Get(pod)
			if len(is.Status.ContainerStatuses) == 0 || is.Status.ContainerStatuses[0].RestartCount == 0 {
				return errors.New("it was not")
			}
			return kube.Ready(t.Context(), s.Name, pod)
		})
		s.shows(pod, "file", "two")
	}
	gitDriver.PluginRuns(t, node)
}
