//go:build e2e

package pernode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liken.sh/e2e/cluster"
	"liken.sh/e2e/page"
)

// listed fails unless every node's CSINode has the driver.
func listed(t *testing.T) {
	t.Helper()
	for _, name := range kube.Nodes {
		cluster.Eventually(t, soon, name+" lists the driver", func() error {
			node, err := kube.Client.StorageV1().CSINodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for _, d := range node.Spec.Drivers {
				if d.Name == driver && d.NodeID == name {
					return nil
				}
			}
			return fmt.Errorf("it lists %v", node.Spec.Drivers)
		})
	}
}

// block is one of the page's, which has to have it.
func block(t *testing.T, file, under, language string, index int) string {
	t.Helper()
	blocks, err := page.Blocks(docs+"/"+file, under, language)
	if err != nil {
		t.Fatal(err)
	}
	if index >= len(blocks) {
		t.Fatalf("%s has %d blocks of %s below %q, want one more", file, len(blocks), language, under)
	}
	return blocks[index]
}

func shell(t *testing.T, script string) string {
	t.Helper()
	text, err := kube.Shell(script)
	if err != nil {
		t.Fatalf("%v, from\n%s", err, script)
	}
	return text
}

// TestInstalled goes through what the page tells to check.
func TestInstalled(t *testing.T) {
	reportFailure(t, namespace)
	listed(t)
	said := shell(t, block(t, "install.md", "Check it", "sh", 0))
	for _, name := range kube.Nodes {
		if !lineHas(said, name, driver) {
			t.Errorf("no line has %s and %s:\n%s", name, driver, said)
		}
		ask := strings.Replace(block(t, "install.md", "Check it", "sh", 1), "POD", pluginRuns(t, name).Name, 1)
		if said := shell(t, ask); !strings.HasSuffix(strings.TrimSpace(said), "ok") {
			t.Errorf("the plugin of %s answers %q", name, said)
		}
	}
}

func lineHas(text string, words ...string) bool {
lines:
	for line := range strings.Lines(text) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue lines
			}
		}
		return true
	}
	return false
}

// TestHelmTestWithShell has the test's pod read and write the volume itself. The
// test with the driver's own image is run when the driver is installed.
func TestHelmTestWithShell(t *testing.T) {
	reportFailure(t, namespace)
	t.Cleanup(func() { rollback(t) })
	upgrade(t, "--set", "test.image=busybox:stable")
	// Twice: the first must leave nothing in the way of the second.
	for range 2 {
		if said := kube.Run(t, "helm", "test", release, "--namespace", namespace); !strings.Contains(said, "Succeeded") {
			t.Errorf("helm test says\n%s", said)
		}
	}
	copiesGo(t, release+"-test")
}

// TestInstallByHand replaces what helm installed by the page's manifests, under a
// pod that runs, and back.
func TestInstallByHand(t *testing.T) {
	s := newSpace(t)
	volume := s.volume()
	node := kube.Nodes[0]
	s.pod("witness", node, volume)
	s.runs("witness", soon)
	s.exec("witness", "echo before > /data/file")
	witness := s.get("witness")
	t.Cleanup(func() {
		if err := install(); err != nil {
			t.Fatal(err)
		}
	})

	if err := uninstall(); err != nil {
		t.Fatal(err)
	}
	s.reads("witness", "/data/file", "before")
	copyStays(t, node, volume)

	objects, daemonSet := block(t, "install.md", "The objects", "yaml", 0), block(t, "install.md", "The DaemonSet", "yaml", 0)
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(objects+"---\n"+daemonSet), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kube.Run(t, "kubectl", "delete", "--filename", file, "--ignore-not-found") })
	kube.Apply(t, objects)
	kube.Apply(t, daemonSet)
	shell(t, block(t, "install.md", "Check it", "sh", 0))
	listed(t)
	s.unharmed(witness)
	s.delete("pod", "witness")
	s.pod("next", node, volume)
	s.runs("next", soon)
	s.reads("next", "/data/file", "before")
}
