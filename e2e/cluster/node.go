package cluster

import (
	"errors"
	"strings"
	"testing"
)

// OnNode runs a command on a node itself, among its processes and mounts.
func (c *Cluster) OnNode(node string, argv ...string) (string, error) {
	return c.Try("", append([]string{"bin/cluster", "exec", node, "--"}, argv...)...)
}

// MustOnNode is OnNode for a command that has to succeed.
func (c *Cluster) MustOnNode(t testing.TB, node string, argv ...string) string {
	t.Helper()
	text, err := c.OnNode(node, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// StopNode cuts the node's power.
func (c *Cluster) StopNode(t testing.TB, node string) {
	t.Helper()
	c.Run(t, "bin/cluster", "stop", node)
}

// StartNode boots the node, or leaves it alone when it runs, and comes back when it
// is ready.
func (c *Cluster) StartNode(t testing.TB, node string) {
	t.Helper()
	c.Run(t, "bin/cluster", "start", node)
}

// KillKubelet ends the kubelet of a node, and waits until another one runs. Pods go on.
func (c *Cluster) KillKubelet(t testing.TB, node string) {
	t.Helper()
	killed := c.kubelet(node)
	c.MustOnNode(t, node, "kill", "-9", killed)
	Eventually(t, Soon, "another kubelet runs", func() error {
		if now := c.kubelet(node); now == "" || now == killed {
			return errors.New("not yet")
		}
		return nil
	})
}

// kubelet is the id of the kubelet's process on the node, empty while none runs.
func (c *Cluster) kubelet(node string) string {
	pid, err := c.OnNode(node, "pidof", "kubelet")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(pid)
}

// NameImage gives an image of the nodes another name until the test ends, so that
// manifests with made-up images work as they are written.
func (c *Cluster) NameImage(t testing.TB, image, name string) {
	t.Helper()
	for _, node := range c.Nodes {
		c.MustOnNode(t, node, "ctr", "-n", "k8s.io", "images", "tag", "--force", image, name)
		t.Cleanup(func() {
			if _, err := c.OnNode(node, "ctr", "-n", "k8s.io", "images", "rm", name); err != nil {
				t.Errorf("take the name of an image away: %v", err)
			}
		})
	}
}
