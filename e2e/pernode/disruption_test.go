//go:build e2e

package pernode

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/e2e/cluster"
)

// The tests of this file take something away that the driver's others need, so none of
// them is parallel: they are over before the parallel ones go on.

// ticking is a container that writes a line a second through one file descriptor,
// and ends, to be restarted and counted, when it cannot.
func ticking(spec *corev1.PodSpec) {
	spec.Containers[0].Command = []string{"sh", "-ec", "trap exit TERM; exec 3>>/data/ticks; while :; do date >&3; sleep 1; done"}
}

// ticks waits until the pod has written some more, and reads them.
func (s *space) ticks(pod string) {
	s.T.Helper()
	lines := func() (int, error) {
		text, err := kube.Try("", "kubectl", "--namespace", s.Name, "exec", pod, "--", "sh", "-c", "wc -l < /data/ticks")
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(text))
	}
	before := -1
	cluster.Eventually(s.T, cluster.Soon, "pod "+pod+" goes on writing", func() error {
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
		s.Runs(node, cluster.Soon)
		s.ticks(node)
		before = append(before, s.Get(node))
		plugins = append(plugins, perNode.PluginRuns(t, node))
	}
	t.Cleanup(func() {
		kube.Run(t, "kubectl", "--namespace", perNode.Namespace, "rollout", "status", "daemonset", perNode.DaemonSet, "--timeout=5m")
	})
	t.Cleanup(func() { kube.Run(t, "helm", "rollback", perNode.Release, "--namespace", perNode.Namespace, "--wait") })
	kube.MustShell(t, strings.Replace(perNode.Block(t, "install.md", "Upgrade and remove", "sh", 0), "=NEW", "=next", 1))
	for i, node := range kube.Nodes {
		after := perNode.PluginRuns(t, node)
		if image := after.Spec.Containers[0].Image; !strings.HasSuffix(image, ":next") || after.UID == plugins[i].UID {
			t.Errorf("%s still has plugin %s with image %s", node, after.Name, image)
		}
		s.Unharmed(before[i])
		s.ticks(node)
		if targets := targetsOf(t, node, volume); len(targets) != 1 {
			t.Errorf("on %s the copy is mounted at %q", node, targets)
		}
		// What the former plugin mounted, this one unmounts.
		s.Delete("pod", node)
		s.pod(node, node, volume, ticking)
		s.Runs(node, cluster.Soon)
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
		s.Runs(node, cluster.Soon)
		s.Delete("pod", node)
	}
	start := perNode.StopPlugin(t, down)
	s.Delete("persistentvolumeclaim", volume)
	s.Delete("persistentvolume", volume)
	copyGoes(t, up, volume)
	copyStays(t, down, volume)
	start()
	perNode.PluginRuns(t, down)
	copyGoes(t, down, volume)
}

// TestSocketsComeBack removes the plugin's sockets, as somebody does who tidies up.
func TestSocketsComeBack(t *testing.T) {
	node := kube.Nodes[1]
	for _, socket := range []string{
		"/var/lib/kubelet/plugins_registry/" + perNode.Name + "-reg.sock",
		"/var/lib/kubelet/plugins/" + perNode.Name + "/csi.sock",
	} {
		s := newSpace(t)
		kube.MustOnNode(t, node, "rm", socket)
		cluster.Eventually(t, cluster.Patient, socket+" is back", func() error {
			_, err := kube.OnNode(node, "test", "-S", socket)
			return err
		})
		s.pod("next", node, s.volume())
		s.Runs("next", cluster.Patient)
		perNode.Listed(t)
	}
}
