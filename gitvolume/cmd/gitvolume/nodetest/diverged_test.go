package nodetest

import (
	"testing"

	"liken.sh/gitvolume/internal/driver"
)

// beside is another node of the same cluster, with a store of its own.
func (n *node) beside() *node {
	n.t.Helper()
	other := newNode(n.t)
	other.api, other.kubeconfig, other.remote = n.api, n.kubeconfig, n.remote
	return other
}

// A volume that conflicts with upstream goes on on its side branch, on another node too that
// has nothing of it, and is back on its ref everywhere when that was merged.
func TestDivergedOnTwoNodes(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Put("main", map[string]string{"f": "1", "g": "1"})
	n.api.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.start()
	v := n.written("v", "notes")
	target := n.mustPublish(v, 1)
	n.remote.Put("main", map[string]string{"f": "theirs", "g": "2"})
	write(t, target, "f", "mine")
	side := func() string { return n.remote.Tip("refs/heads/main.v") }
	await(t, "the side branch", func() bool { return side() != "" })
	n.told("Pod", "GitVolumeDiverged", "main.v")
	n.told("PersistentVolumeClaim", "GitVolumeDiverged", "main.v")
	n.awaitAnswer("/metrics", 200, `git_csi_diverged{claim="v",namespace="default"} 1`)
	shows(t, target, "f", "mine")
	shows(t, target, "g", "1") // Nothing of the tree changes.
	n.mustUnpublish(v, 1)
	n.plugin.stop()

	other := n.beside()
	other.start("--node-id", "node-2")
	target = other.mustPublish(v, 2)
	shows(t, target, "f", "mine")
	other.awaitAnswer("/metrics", 200, `git_csi_diverged{claim="v",namespace="default"} 1`)
	before := side()
	write(t, target, "h", "1")
	await(t, "the write to arrive at the side branch", func() bool { return side() != before })
	if n.has("h", "1") {
		t.Error("main has what conflicts")
	}

	// Somebody squashes it.
	n.remote.Put("main", map[string]string{"f": "mine", "h": "1"})
	write(t, target, "h", "2")
	await(t, "the write to arrive", func() bool { return n.has("h", "2") && side() == "" })
	n.told("Pod", "GitVolumeHealed", "")
	other.awaitAnswer("/metrics", 200, `git_csi_diverged{claim="v",namespace="default"} 0`)
	shows(t, target, "g", "2")
	other.mustUnpublish(v, 2)

	// The first node has a tree that diverged, and learns of it at the start.
	n.start()
	target = n.mustPublish(v, 3)
	shows(t, target, "h", "2")
	shows(t, target, "f", "mine")
	n.awaitAnswer("/metrics", 200, `git_csi_diverged{claim="v",namespace="default"} 0`)
	write(t, target, "h", "3")
	n.mustUnpublish(v, 3)
	if !n.has("h", "3") || side() != "" {
		t.Errorf("the stop pushed nothing to main; the side branch is %q", side())
	}
	n.remote.Git("fsck", "--strict")
}
