//go:build e2e

package gitvolume

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// reading is a container that has a file open and reads another again and again, and
// ends, to be restarted and counted, when it cannot.
func reading(spec *corev1.PodSpec) {
	spec.Containers[0].Command = []string{"sh", "-ec",
		"trap exit TERM; exec 3</data/file; while :; do cat /data/other >/dev/null; sleep 0.2; done"}
}

// TestUpgrade changes the image under running pods, as the page says, and goes back.
// Private volumes wait for their credential meanwhile, and say so; what pods write then is
// neither lost nor written twice.
func TestUpgrade(t *testing.T) {
	s := newSpace(t)
	kube.NameImage(t, "registry.example.com/gitvolume:devel", "registry.example.com/gitvolume:next")
	for _, repository := range []string{"public", "private"} {
		s.Commit(t, repository, "main", "file", "one")
		s.Commit(t, repository, "main", "other", "one")
	}
	s.secret("token", s.TokenSecret())
	claim := s.claim("token", attributes(s.HTTPS("private"), "pull", often))
	class := s.Class(soon())
	writers := map[string]string{} // The claims.
	var pods, counts []string
	for _, node := range kube.Nodes {
		s.Start("inline-"+node, cluster.PodSpec(node, inline("", attributes(s.HTTP("public"), "pull", often))), reading)
		s.Start("claim-"+node, cluster.PodSpec(node, readOnly(claim)), reading)
		pods = append(pods, "inline-"+node, "claim-"+node)
		s.Commit(t, "private-"+node, "main", "file", "one")
		writers[node] = s.writeable("private-"+node, class)
		s.Start("private-"+node, cluster.PodSpec(node, cluster.Claim(writers[node])), counting)
		counts = append(counts, "private-"+node)
	}
	var before []*corev1.Pod
	for _, pod := range slices.Concat(pods, counts) {
		s.Runs(pod, cluster.Patient)
		before = append(before, s.Get(pod))
	}
	for _, pod := range counts {
		s.countsOn(pod, pod)
	}
	plugins := map[string]*corev1.Pod{}
	for _, node := range kube.Nodes {
		plugins[node] = gitDriver.PluginRuns(t, node)
	}

	t.Cleanup(func() { gitDriver.Rollback(t) })
	kube.MustShell(t, strings.Replace(gitDriver.Block(t, "install.md", "Upgrade and remove", "sh", 0), "=NEW", "=next", 1))
	for _, node := range kube.Nodes {
		after := gitDriver.PluginRuns(t, node)
		if image := after.Spec.Containers[0].Image; !strings.HasSuffix(image, ":next") || after.UID == plugins[node].UID {
			t.Errorf("%s still has plugin %s with image %s", node, after.Name, image)
		}
		pluginSays(t, after.Name, "CredentialMissing", claim)
		pluginSays(t, after.Name, "CredentialMissing", writers[node])
	}
	s.Commit(t, "public", "main", "file", "two")
	s.Commit(t, "private", "main", "file", "two")
	for _, pod := range pods {
		s.shows(pod, "file", "two")
		s.Reads(pod, "/proc/1/fd/3", "one")
	}
	for _, pod := range counts {
		s.countsOn(pod, pod)
		s.counted(pod, pod)
	}
	for _, pod := range before {
		s.Unharmed(pod)
	}
	// What the former plugin mounted, this one unmounts.
	for _, pod := range slices.Concat(pods, counts) {
		s.Delete("pod", pod)
	}
}
