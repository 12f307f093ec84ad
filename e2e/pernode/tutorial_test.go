//go:build e2e

package pernode

import "testing"

// TestTutorial is the page, from its volume to taking all of it away.
func TestTutorial(t *testing.T) {
	t.Parallel()
	kube.Undisturbed(t)
	perNode.ReportFailure(t, "visits")
	// What the page ends with, if the test does not come there.
	t.Cleanup(func() {
		kube.Run(t, "kubectl", "--namespace", "visits", "delete", "daemonset,pod", "--all", "--ignore-not-found")
		kube.Run(t, "kubectl", "--namespace", "visits", "delete", "persistentvolumeclaim", "--all", "--timeout=3m")
		for _, kind := range []string{"persistentvolume", "namespace"} {
			kube.Run(t, "kubectl", "delete", kind, "visits", "--ignore-not-found", "--timeout=3m")
		}
		copiesGo(t, "visits")
	})
	perNode.Follow(t, "tutorial/volume.md")
}
