package nodetest

import (
	"testing"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/gitvolume/internal/driver"
)

// beside is another node of the same cluster, with a store of its own.
func (n *node) beside() *node {
	n.T.Helper()
	other := newNode(n.T)
	other.JoinClusterOf(n.Node)
	other.remote = n.remote
	return other
}

// A volume that conflicts with upstream goes on on its side branch, on another node too that
// has nothing of it, and is back on its ref everywhere when that was merged.
func TestDivergedOnTwoNodes(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.remote.Put("main", map[string]string{"f": "1", "g": "1"})
	n.API.PutClass("notes", driver.Name, map[string]string{"push.quiesce": "5s"})
	n.Start()
	v := n.written("v", "notes")
	target := n.MustPublish(v, 1)
	n.remote.Put("main", map[string]string{"f": "theirs", "g": "2"})
	write(t, target, "f", "mine")
	side := func() string { return n.remote.Tip("refs/heads/main.v") }
	process.Await(t, "the side branch", func() bool { return side() != "" })
	n.told("Pod", "GitVolumeDiverged", "main.v")
	n.told("PersistentVolumeClaim", "GitVolumeDiverged", "main.v")
	n.AwaitAnswer("/metrics", 200, `git_csi_diverged{claim="v",namespace="default"} 1`)
	shows(t, target, "f", "mine")
	shows(t, target, "g", "1") // Nothing of the tree changes.
	n.MustUnpublish(v, 1)
	n.Plugin.Stop()

	other := n.beside()
	other.Start("--node-id", "node-2")
	target = other.MustPublish(v, 2)
	shows(t, target, "f", "mine")
	other.AwaitAnswer("/metrics", 200, `git_csi_diverged{claim="v",namespace="default"} 1`)
	before := side()
	write(t, target, "h", "1")
	process.Await(t, "the write to arrive at the side branch", func() bool { return side() != before })
	if n.has("h", "1") {
		t.Error("main has what conflicts")
	}

	// Somebody squashes it.
	n.remote.Put("main", map[string]string{"f": "mine", "h": "1"})
	write(t, target, "h", "2")
	process.Await(t, "the write to arrive", func() bool { return n.has("h", "2") && side() == "" })
	n.told("Pod", "GitVolumeHealed", "")
	other.AwaitAnswer("/metrics", 200, `git_csi_diverged{claim="v",namespace="default"} 0`)
	shows(t, target, "g", "2")
	other.MustUnpublish(v, 2)

	// The first node has a tree that diverged, and learns of it at the start.
	n.Start()
	target = n.MustPublish(v, 3)
	shows(t, target, "h", "2")
	shows(t, target, "f", "mine")
	n.AwaitAnswer("/metrics", 200, `git_csi_diverged{claim="v",namespace="default"} 0`)
	write(t, target, "h", "3")
	n.MustUnpublish(v, 3)
	if !n.has("h", "3") || side() != "" {
		t.Errorf("the stop pushed nothing to main; the side branch is %q", side())
	}
	n.remote.Git("fsck", "--strict")
}
