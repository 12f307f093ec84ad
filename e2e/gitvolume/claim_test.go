//go:build e2e

package gitvolume

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

func (s *space) readsNow(pod, file, want string) error {
	got, err := s.Try(pod, "cat "+file)
	if err == nil && got != want {
		err = fmt.Errorf("it reads %q, want %q", got, want)
	}
	return err
}

// onEachNode has a pod with the volume on each node, named as the node.
func (s *space) onEachNode(volume corev1.VolumeSource) {
	s.T.Helper()
	for _, node := range kube.Nodes {
		s.Start(node, cluster.PodSpec(node, volume))
	}
	for _, node := range kube.Nodes {
		s.Runs(node, cluster.Patient)
	}
}

// TestClaimOnTwoNodes is kept current on each, says on the pods and the claim what is
// wrong, and that it is well again by what it shows.
func TestClaimOnTwoNodes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Commit(t, "private", "release", "file", "one")
	s.secret("token", s.TokenSecret())
	claim := s.claim("token", attributes(s.HTTPS("private"), "ref", "release", "pull", often))
	s.onEachNode(readOnly(claim))
	s.Commit(t, "private", "release", "file", "two")
	for _, node := range kube.Nodes {
		s.shows(node, "file", "two")
	}

	s.Commit(t, "private", "main", "file", "of another branch")
	s.DeleteBranch(t, "private", "release")
	for _, node := range kube.Nodes {
		s.tells("pod", node, "GitVolumeRefDeleted", "release")
		s.Reads(node, "/data/file", "two")
	}
	s.tells("persistentvolumeclaim", claim, "GitVolumeRefDeleted", "release")
	s.HealthBecomes(kube.Nodes[0], "data Degraded RefDeleted")
	s.Commit(t, "private", "release", "file", "three")
	for _, node := range kube.Nodes {
		s.shows(node, "file", "three")
	}
	s.HealthBecomes(kube.Nodes[0])
}

// TestDemand has a volume that nobody pulls pulled on every node at once.
func TestDemand(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Commit(t, "private", "main", "file", "one")
	s.secret("key", s.KeySecret())
	claim := s.claim("key", attributes(s.SSH("private"), "pull", "on-demand"))
	s.onEachNode(readOnly(claim))
	for i, content := range []string{"two", "three"} {
		before := s.Exec(kube.Nodes[0], "cat /data/file")
		s.Commit(t, "private", "main", "file", content)
		cluster.Steadily(t, 5*time.Second, "nobody asked for the update", func() error {
			var errs []error
			for _, node := range kube.Nodes {
				errs = append(errs, s.readsNow(node, "/data/file", before))
			}
			return errors.Join(errs...)
		})
		kube.Run(t, "kubectl", "annotate", "--overwrite", "persistentvolume", claim, fmt.Sprintf("git.liken.sh/pull-requested-at=%d", i))
		for _, node := range kube.Nodes {
			cluster.Eventually(t, cluster.Soon, node+" has pulled", func() error {
				return s.readsNow(node, "/data/file", content)
			})
		}
	}
}

// TestMistakes in a manifest reach the person who looks at the pod or the claim.
func TestMistakes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Commit(t, "public", "main", "file", "one")
	url := s.HTTP("public")
	writeable := s.claim("", attributes(url))
	once := s.Volume(corev1.PersistentVolumeSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{VolumeAttributes: attributes(url)},
		},
	})
	rows := []struct {
		pod                  string
		volume               corev1.VolumeSource
		claim, reason, words string
	}{
		{"not-read-only", cluster.Claim(writeable), writeable, "GitVolumeRefused", "readOnly: true"},
		{"attribute", inline("", attributes(url, "branch", "main")), "", "GitVolumeRefused", `attribute "branch" is not known`},
		{"loopback", inline("", attributes("http://127.0.0.1:8080/git/public.git")), "", "GitVolumeRefused", "the remote's address is refused"},
		{"ref", inline("", attributes(url, "ref", "nothing")), "", "GitVolumeFetchFailed", `the remote has no such ref: "nothing"`},
		{"repository", inline("", attributes(s.HTTP("nothing"))), "", "GitVolumeFetchFailed", "the remote has no such repository"},
	}
	for _, row := range rows {
		s.Start(row.pod, cluster.PodSpec("", row.volume))
	}
	s.Start("once", cluster.PodSpec("", readOnly(once)))
	for _, row := range rows {
		s.tells("pod", row.pod, row.reason, row.words)
		if row.claim != "" {
			s.tells("persistentvolumeclaim", row.claim, row.reason, row.words)
		}
		s.waits(row.pod)
	}
	// The stage, which knows no pod, refuses the access mode: the words are the kubelet's.
	s.describes("once", "FailedMount", "ReadWriteOnce is not served")
}
