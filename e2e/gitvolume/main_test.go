//go:build e2e

package gitvolume

import (
	"os"
	"testing"

	"liken.sh/e2e/cluster"
)

// gitDriver is what all tests share, and nobody changes; kube is its cluster.
var (
	gitDriver = &cluster.Driver{
		Name: "git.liken.sh", Namespace: "gitvolume", Release: "gitvolume", DaemonSet: "gitvolume-node",
		Docs: "gitvolume/docs",
	}
	kube *cluster.Cluster
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, "../..", gitDriver, func(c *cluster.Cluster) { kube = c }))
}
