package nodetest

import (
	"os"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/csitest/mountns"
)

// storeFile puts a file into a store that is to be found.
func (n *node) storeFile(name, content string) {
	n.t.Helper()
	if err := os.MkdirAll(n.store, 0o700); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.store, name), []byte(content), 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) refused(flags []string, words ...string) {
	n.t.Helper()
	startProcess(n.t, n.command(n.flags(flags...)...)).refused(words...)
}

func TestStoresThatAreRefused(t *testing.T) {
	mountns.Require(t)
	for name, row := range map[string]struct {
		flags   []string
		prepare func(n *node)
		words   []string
	}{
		"of a watch":                {nil, func(n *node) { n.storeFile("format", "1\n"); n.storeFile("cluster", "watch\n") }, []string{"--store", "gitvolume watch"}},
		"of somebody else":          {nil, func(n *node) { n.storeFile("precious", "x") }, []string{"--store", "empty directory"}},
		"of a later release":        {nil, func(n *node) { n.storeFile("format", "2\n") }, []string{"--store", "format 2"}},
		"whose disk is not mounted": {[]string{"--require-mount"}, func(*node) {}, []string{"--store", "--require-mount", "not a mount point"}},
		"in use":                    {nil, func(n *node) { n.start(); n.kubeletDir = mountns.SharedDir(n.t) }, []string{"--store", "another process"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			row.prepare(n)
			n.refused(row.flags, row.words...)
		})
	}
}

// A store is its cluster's. Another one's has it tidied no more, until somebody says that
// it is theirs now.
func TestTheStoresCluster(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.start()
	n.plugin.awaitLog("the store belongs to this cluster from now on")
	n.plugin.stop()

	n.api.SetCluster("cluster-2")
	n.start()
	n.plugin.awaitLog("nothing is removed from the store")
	n.plugin.awaitLog("--adopt-store")
	n.awaitAnswer("/readyz", 200, "ok")
	n.plugin.stop()

	n.start("--adopt-store")
	n.plugin.awaitLog("the store belongs to this cluster from now on")
	n.plugin.stop()
	n.start()
	n.awaitAnswer("/readyz", 200, "ok")
}

// What was tried without a cluster is not a cluster's.
func TestAStandaloneStoreInACluster(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.start("--kubeconfig=", "--standalone")
	n.plugin.stop()
	n.start()
	n.plugin.awaitLog("nothing is removed from the store")
}
