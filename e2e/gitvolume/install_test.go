//go:build e2e

package gitvolume

import (
	"strings"
	"testing"
)

// TestInstalled goes through what the page tells to check.
func TestInstalled(t *testing.T) {
	kube.Undisturbed(t)
	gitDriver.ReportFailure(t, gitDriver.Namespace)
	gitDriver.Checked(t)
}

// TestHelmTest has the chart's own test read a repository.
func TestHelmTest(t *testing.T) {
	s := newSpace(t)
	gitDriver.ReportFailure(t, gitDriver.Namespace)
	s.Commit(t, "public", "release", "file", "one")
	t.Cleanup(func() { gitDriver.Rollback(t) })
	gitDriver.Upgrade(t, "--set", "test.url="+s.HTTP("public"), "--set", "test.ref=release")
	// Twice: the first must leave nothing in the way of the second.
	for range 2 {
		if said := kube.Run(t, "helm", "test", gitDriver.Release, "--namespace", gitDriver.Namespace); !strings.Contains(said, "Succeeded") {
			t.Errorf("helm test says\n%s", said)
		}
	}
}
