//go:build e2e

package gitvolume

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// What takes a node away comes first, while the tests of another driver wait for nothing
// that takes long: Go runs tests in the order of their files' names.

// TestNodeRestarts with pods that stay the node's: first its kubelet, then all of it. Their
// volumes are there again, at what upstream has by then, and nothing that was written is
// lost or written twice.
func TestNodeRestarts(t *testing.T) {
	kube.Alone(t)
	s := newSpace(t)
	node := kube.Nodes[1]
	s.Commit(t, "public", "main", "file", "one")
	s.Commit(t, "private", "main", "file", "one")
	s.Commit(t, "private-written", "main", "file", "one")
	s.secret("token", s.TokenSecret())
	claim := s.claim("token", attributes(s.HTTPS("private"), "pull", often))
	t.Cleanup(func() { kube.StartNode(t, node) })
	s.Start("inline", cluster.PodSpec(node, inline("", attributes(s.HTTP("public"), "pull", often))))
	s.Start("claim", cluster.PodSpec(node, readOnly(claim)))
	s.Start("writer", cluster.PodSpec(node, cluster.Claim(s.writeable("private-written", s.Class(soon())))), counting)
	pods := []string{"inline", "claim", "writer"}
	var before []*corev1.Pod
	for _, pod := range pods {
		s.Runs(pod, cluster.Patient)
		s.Reads(pod, "/data/file", "one")
		before = append(before, s.Get(pod))
	}
	s.countsOn("writer", "private-written")

	kube.KillKubelet(t, node)
	s.countsOn("writer", "private-written")
	for _, pod := range before {
		s.Unharmed(pod)
	}

	kube.StopNode(t, node)
	for _, repository := range []string{"public", "private", "private-written"} {
		s.Commit(t, repository, "main", "file", "two")
	}
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
	s.countsOn("writer", "private-written")
	s.counted("writer", "private-written")
}
