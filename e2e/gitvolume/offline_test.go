//go:build e2e

package gitvolume

import (
	"testing"

	"liken.sh/e2e/cluster"
)

// TestForgeDown has pods start while the git server is away: on a node that shows what it
// had to another pod, and on one that never had it.
func TestForgeDown(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Commit(t, "private", "main", "file", "one")
	s.secret("token", s.TokenSecret())
	url := s.HTTPS("private")
	refuse := inline("token", attributes(url, "pull", often, "offline", "refuse"))
	stale := inline("token", attributes(url, "pull", often, "offline", "allowStale"))
	has, never := kube.Nodes[0], kube.Nodes[1]
	s.Start("keeper", cluster.PodSpec(has, stale))
	s.Runs("keeper", cluster.Patient)

	s.Stop(t)
	s.tells("pod", "keeper", "GitVolumeFetchFailed", "the remote cannot be reached")
	s.Start("stale", cluster.PodSpec(has, stale))
	s.Start("refused", cluster.PodSpec(has, refuse))
	s.Start("never", cluster.PodSpec(never, stale))
	s.Runs("stale", cluster.Patient)
	s.Reads("stale", "/data/file", "one")
	s.Reads("keeper", "/data/file", "one")
	s.tells("pod", "stale", "GitVolumeStale", "")
	for _, pod := range []string{"refused", "never"} {
		s.tells("pod", pod, "GitVolumeFetchFailed", "the remote cannot be reached")
		s.waits(pod)
	}

	s.Resume(t)
	s.Commit(t, "private", "main", "file", "two")
	for _, pod := range []string{"refused", "never"} {
		s.Runs(pod, cluster.Patient)
	}
	for _, pod := range []string{"keeper", "stale", "refused", "never"} {
		s.shows(pod, "file", "two")
	}
}
