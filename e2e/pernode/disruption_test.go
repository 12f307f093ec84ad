//go:build e2e

package pernode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// The tests of this file take something away that the others need, so none of
// them is parallel: they are over before the parallel ones go on.

// ticking is a container that writes a line a second through one file descriptor,
// and ends, to be restarted and counted, when it cannot.
func ticking(spec *corev1.PodSpec) {
	spec.Containers[0].Command = []string{"sh", "-ec", "trap exit TERM; exec 3>>/data/ticks; while :; do date >&3; sleep 1; done"}
}

// ticks waits until the pod has written some more, and reads them.
func (s *space) ticks(pod string) {
	s.t.Helper()
	lines := func() (int, error) {
		text, err := kube.Try("", "kubectl", "--namespace", s.name, "exec", pod, "--", "sh", "-c", "wc -l < /data/ticks")
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(text))
	}
	before := -1
	cluster.Eventually(s.t, soon, "pod "+pod+" goes on writing", func() error {
		now, err := lines()
		if err != nil {
			return err
		}
		if before < 0 {
			before = now
		}
		if now < before+2 {
			return fmt.Errorf("%d lines, before %d", now, before)
		}
		return nil
	})
}

// upgrade is helm's, and waits until the new plugins are ready.
func upgrade(t *testing.T, arguments ...string) {
	t.Helper()
	kube.Run(t, append([]string{"helm", "upgrade", release, "charts/pernode", "--namespace", namespace,
		"--reset-then-reuse-values", "--wait", "--timeout", "5m"}, arguments...)...)
}

// rollback is helm's, to what TestMain installed.
func rollback(t *testing.T) {
	t.Helper()
	kube.Run(t, "helm", "rollback", release, "1", "--namespace", namespace, "--wait", "--timeout", "5m")
}

// TestUpgrade changes the image under running pods, as the page says, and goes back.
func TestUpgrade(t *testing.T) {
	s := newSpace(t)
	volume := s.volume()
	kube.NameImage(t, "registry.example.com/pernode:devel", "registry.example.com/pernode:next")
	var before, plugins []*corev1.Pod
	for _, node := range kube.Nodes {
		s.pod(node, node, volume, ticking)
	}
	for _, node := range kube.Nodes {
		s.runs(node, soon)
		s.ticks(node)
		before = append(before, s.get(node))
		plugins = append(plugins, pluginRuns(t, node))
	}
	t.Cleanup(func() {
		kube.Run(t, "kubectl", "--namespace", namespace, "rollout", "status", "daemonset", release, "--timeout=5m")
	})
	t.Cleanup(func() { kube.Run(t, "helm", "rollback", release, "--namespace", namespace, "--wait") })
	shell(t, strings.Replace(block(t, "install.md", "Upgrade and remove", "sh", 0), "=NEW", "=next", 1))
	for i, node := range kube.Nodes {
		after := pluginRuns(t, node)
		if image := after.Spec.Containers[0].Image; !strings.HasSuffix(image, ":next") || after.UID == plugins[i].UID {
			t.Errorf("%s still has plugin %s with image %s", node, after.Name, image)
		}
		s.unharmed(before[i])
		s.ticks(node)
		if targets := targetsOf(t, node, volume); len(targets) != 1 {
			t.Errorf("on %s the copy is mounted at %q", node, targets)
		}
		// What the former plugin mounted, this one unmounts.
		s.delete("pod", node)
		s.pod(node, node, volume, ticking)
		s.runs(node, soon)
	}
}

// TestCopyGoesWhenItsPluginIsBack deletes a volume while one node has no plugin.
func TestCopyGoesWhenItsPluginIsBack(t *testing.T) {
	s := newSpace(t)
	volume := s.volume()
	up, down := kube.Nodes[0], kube.Nodes[1]
	for _, node := range kube.Nodes {
		s.pod(node, node, volume)
	}
	for _, node := range kube.Nodes {
		s.runs(node, soon)
		s.delete("pod", node)
	}
	t.Cleanup(func() { rollback(t) })
	upgrade(t, "--set-json", fmt.Sprintf(`affinity={"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":
		{"nodeSelectorTerms":[{"matchExpressions":[{"key":%q,"operator":"NotIn","values":[%q]}]}]}}}`, corev1.LabelHostname, down))
	cluster.Eventually(t, soon, down+" has no plugin", func() error {
		if pod, err := plugin(t.Context(), down); pod != nil {
			return fmt.Errorf("it has %s (%w)", pod.Name, err)
		}
		return nil
	})
	s.delete("persistentvolumeclaim", volume)
	s.delete("persistentvolume", volume)
	copyGoes(t, up, volume)
	copyStays(t, down, volume)
	rollback(t)
	pluginRuns(t, down)
	copyGoes(t, down, volume)
}

// TestKubeletRestarts under a pod that runs.
func TestKubeletRestarts(t *testing.T) {
	s := newSpace(t)
	volume, other := s.volume(), s.volume()
	node := kube.Nodes[0]
	s.pod("witness", node, volume, ticking)
	s.runs("witness", soon)
	before := s.get("witness")
	killed := kube.Kubelet(node)
	kube.MustOnNode(t, node, "kill", "-9", killed)
	cluster.Eventually(t, soon, "another kubelet runs", func() error {
		if now := kube.Kubelet(node); now == "" || now == killed {
			return errors.New("not yet")
		}
		return nil
	})
	s.pod("next", node, other)
	s.runs("next", soon)
	listed(t)
	s.ticks("witness")
	s.unharmed(before)
	s.delete("pod", "witness")
	if targets := targetsOf(t, node, volume); len(targets) != 0 {
		t.Errorf("the pod is gone, and the copy still mounted at %q", targets)
	}
}

// TestSocketsComeBack removes the plugin's sockets, as somebody does who tidies up.
func TestSocketsComeBack(t *testing.T) {
	node := kube.Nodes[1]
	for _, socket := range []string{
		"/var/lib/kubelet/plugins_registry/" + driver + "-reg.sock",
		"/var/lib/kubelet/plugins/" + driver + "/csi.sock",
	} {
		s := newSpace(t)
		kube.MustOnNode(t, node, "rm", socket)
		cluster.Eventually(t, patient, socket+" is back", func() error {
			_, err := kube.OnNode(node, "test", "-S", socket)
			return err
		})
		s.pod("next", node, s.volume())
		s.runs("next", patient)
		listed(t)
	}
}

// TestNodeReboots with a pod that stays the node's, and one that is force-deleted
// while the node is down.
func TestNodeReboots(t *testing.T) {
	s := newSpace(t)
	node := kube.Nodes[1]
	stays, lost := s.volume(), s.volume()
	t.Cleanup(func() { kube.StartNode(t, node) })
	s.pod("stays", node, stays)
	s.pod("lost", node, lost)
	for _, pod := range []string{"stays", "lost"} {
		s.runs(pod, soon)
		s.exec(pod, "echo "+pod+" > /data/file; sync")
	}
	before := s.get("stays")
	kube.StopNode(t, node)
	s.delete("pod", "lost", "--force", "--grace-period=0")
	kube.StartNode(t, node)
	s.pod("found", node, lost)
	s.runs("found", patient)
	s.reads("found", "/data/file", "lost")
	cluster.Eventually(t, patient, "the pod was started again", func() error {
		is := s.get("stays")
		if is.UID != before.UID {
			return errors.New("it was replaced")
		}
		if is.Status.ContainerStatuses[0].RestartCount == 0 {
			return errors.New("it was not")
		}
		return ready(t.Context(), s.name, "stays")
	})
	s.reads("stays", "/data/file", "stays")
	pluginRuns(t, node)
}
