//go:build e2e

package gitvolume

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// TestInlinePublic is seen from a pod: what it can read and not write, an update, and
// what it had opened before that.
func TestInlinePublic(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Commit(t, "public", "main", "file", "one")
	s.Commit(t, "public", "main", "dir/sub", "below")
	volume := inline("", attributes(s.HTTP("public"), "pull", often))
	s.Start("reader", cluster.PodSpec(kube.Nodes[1], volume), func(spec *corev1.PodSpec) {
		spec.Containers[0].Command = []string{"sh", "-ec", "exec 3</data/file; " + cluster.Idle}
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts,
			corev1.VolumeMount{Name: "data", MountPath: "/sub", SubPath: "dir"})
	})
	s.Runs("reader", cluster.Patient)
	s.Reads("reader", "/data/file", "one")
	if got := s.Exec("reader", "ls -A /data"); got != "dir\nfile" {
		t.Errorf("the pod sees %q", got)
	}
	if got := s.Exec("reader", "touch /data/file 2>/dev/null && echo written || echo refused"); got != "refused" {
		t.Errorf("a write was %s", got)
	}

	s.Commit(t, "public", "main", "file", "two")
	s.shows("reader", "file", "two")
	s.Reads("reader", "/proc/1/fd/3", "one")
	s.Commit(t, "public", "main", "dir/sub", "deeper")
	cluster.Eventually(t, cluster.Soon, "the mount of a subPath is updated too", func() error {
		return s.readsNow("reader", "/sub/sub", "deeper")
	})
	if lines := s.Described("pod", "reader", "GitVolume"); len(lines) > 0 {
		t.Errorf("Events of a pod with which nothing is wrong:\n%s", strings.Join(lines, "\n"))
	}
}

// TestInlinePrivate has pods with a credential, and on the same node, of the same
// repositories, pods without.
func TestInlinePrivate(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.Commit(t, "private", "main", "file", "secret")
	s.secret("token", s.TokenSecret())
	s.secret("key", s.KeySecret())
	wrong := s.TokenSecret()
	wrong["token"] = "guessed"
	s.secret("wrong", wrong)
	node := kube.Nodes[1]
	https, ssh := attributes(s.HTTPS("private"), "pull", often), attributes(s.SSH("private"), "pull", often)
	s.Start("by-token", cluster.PodSpec(node, inline("token", https)))
	s.Start("by-key", cluster.PodSpec(node, inline("key", ssh)))
	for _, pod := range []string{"by-token", "by-key"} {
		s.Runs(pod, cluster.Patient)
		s.Reads(pod, "/data/file", "secret")
	}

	rows := []struct {
		pod, secret   string
		attributes    map[string]string
		reason, words string
	}{
		{"guesses", "wrong", https, "GitVolumeFetchFailed", "the remote refuses the credential"},
		{"stale", "wrong", attributes(s.HTTPS("private"), "pull", often, "offline", "allowStale"), "GitVolumeFetchFailed", "the remote refuses the credential"},
		{"no-key", "", ssh, "GitVolumeRefused", "ssh lets nobody in without a key"},
		{"token-for-ssh", "token", ssh, "GitVolumeRefused", "ssh takes a private key, and the Secret has a token"},
	}
	for _, row := range rows {
		s.Start(row.pod, cluster.PodSpec(node, inline(row.secret, row.attributes)))
	}
	for _, row := range rows {
		s.tells("pod", row.pod, row.reason, row.words)
		s.waits(row.pod)
	}

	s.Commit(t, "private", "main", "file", "changed")
	s.shows("by-token", "file", "changed")
	s.shows("by-key", "file", "changed")
}
