//go:build e2e

package pernode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/e2e/cluster"
)

// TestInstalled goes through what the page tells to check.
func TestInstalled(t *testing.T) {
	kube.Undisturbed(t)
	perNode.ReportFailure(t, perNode.Namespace)
	perNode.Checked(t)
}

// TestHelmTestWithShell has the test's pod read and write the volume itself. The
// test with the driver's own image is run when the driver is installed.
func TestHelmTestWithShell(t *testing.T) {
	kube.Undisturbed(t)
	perNode.ReportFailure(t, perNode.Namespace)
	t.Cleanup(func() { perNode.Rollback(t) })
	perNode.Upgrade(t, "--set", "test.image=busybox:stable")
	// Twice: the first must leave nothing in the way of the second.
	for range 2 {
		if said := kube.Run(t, "helm", "test", perNode.Release, "--namespace", perNode.Namespace); !strings.Contains(said, "Succeeded") {
			t.Errorf("helm test says\n%s", said)
		}
	}
	copiesGo(t, perNode.Release+"-test")
}

// TestInstallByHand replaces what helm installed by the page's manifests, under a
// pod that runs, and back.
func TestInstallByHand(t *testing.T) {
	s := newSpace(t)
	volume := s.volume()
	node := kube.Nodes[0]
	s.pod("witness", node, volume)
	s.Runs("witness", cluster.Soon)
	s.Exec("witness", "echo before > /data/file")
	witness := s.Get("witness")
	t.Cleanup(func() {
		if err := perNode.Install(); err != nil {
			t.Fatal(err)
		}
	})

	if err := perNode.Uninstall(); err != nil {
		t.Fatal(err)
	}
	s.Reads("witness", "/data/file", "before")
	copyStays(t, node, volume)

	objects, daemonSet := perNode.Block(t, "install.md", "The objects", "yaml", 0), perNode.Block(t, "install.md", "The DaemonSet", "yaml", 0)
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(objects+"---\n"+daemonSet), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kube.Run(t, "kubectl", "delete", "--filename", file, "--ignore-not-found") })
	kube.Apply(t, objects)
	kube.Apply(t, daemonSet)
	kube.MustShell(t, perNode.Block(t, "install.md", "Check it", "sh", 0))
	perNode.Listed(t)
	s.Unharmed(witness)
	s.Delete("pod", "witness")
	s.pod("next", node, volume)
	s.Runs("next", cluster.Soon)
	s.Reads("next", "/data/file", "before")
}
