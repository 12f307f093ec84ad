//go:build e2e

package gitvolume

import (
	"testing"

	"liken.sh/e2e/cluster"
)

// TestTutorial is the page, from its git server to taking all of it away.
func TestTutorial(t *testing.T) {
	t.Parallel()
	kube.Undisturbed(t)
	gitDriver.ReportFailure(t, "diary")
	// What the page ends with, if the test does not come there.
	t.Cleanup(func() {
		for _, kind := range []string{"deployment", "persistentvolumeclaim"} {
			kube.Run(t, "kubectl", "--namespace", "diary", "delete", kind, "diary", "--ignore-not-found", "--cascade=foreground")
		}
		for _, kind := range []string{"persistentvolume", "namespace", "volumeattributesclass"} {
			kube.Run(t, "kubectl", "delete", kind, "diary", "--ignore-not-found", "--timeout=3m")
		}
	})
	gitDriver.Follow(t, "tutorial/cluster.md")
	for _, node := range kube.Nodes {
		cluster.Eventually(t, cluster.Soon, node+" has no tree of the diary", func() error {
			_, err := kube.OnNode(node, "test", "!", "-e", store+"/volumes/diary")
			return err
		})
	}
}
