//go:build e2e

package pernode

import (
	"os"
	"testing"

	"liken.sh/e2e/cluster"
)

const store = "/var/lib/liken/per-node"

// perNode is what all tests share, and nobody changes; kube is its cluster.
var (
	perNode = &cluster.Driver{
		Name: "per-node.liken.sh", Namespace: "per-node", Release: "pernode", DaemonSet: "pernode",
		Docs: "pernode/docs",
	}
	kube *cluster.Cluster
)

func TestMain(m *testing.M) {
	os.Exit(cluster.Run(m, "../..", perNode, func(c *cluster.Cluster) { kube = c }))
}
