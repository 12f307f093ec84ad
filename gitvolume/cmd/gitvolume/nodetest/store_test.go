package nodetest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

// storeFile puts a file into a store that is to be found.
func (n *node) storeFile(name, content string) {
	n.T.Helper()
	if err := os.MkdirAll(n.Store, 0o700); err != nil {
		n.T.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.Store, name), []byte(content), 0o600); err != nil {
		n.T.Fatal(err)
	}
}

// inMemory has the store on a tmpfs of so many bytes.
func (n *node) inMemory(size string) {
	n.T.Helper()
	if err := os.MkdirAll(n.Store, 0o700); err != nil {
		n.T.Fatal(err)
	}
	if err := unix.Mount("none", n.Store, "tmpfs", 0, "mode=700,size="+size); err != nil {
		n.T.Fatal(err)
	}
	n.T.Cleanup(func() { _ = unix.Unmount(n.Store, unix.MNT_DETACH) })
}

// fill takes so many bytes of the store's disk.
func (n *node) fill(bytes int) {
	n.T.Helper()
	if err := os.WriteFile(filepath.Join(n.Store, "filler"), make([]byte, bytes), 0o600); err != nil {
		n.T.Fatal(err)
	}
}

func (n *node) refused(flags []string, words ...string) {
	n.T.Helper()
	process.Start(n.T, n.Command(flags...)).Refused("gitvolume", words...)
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
		"in use":                    {nil, func(n *node) { n.Start(); n.KubeletDir = mountns.SharedDir(n.T) }, []string{"--store", "another process"}},
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
	n.Start()
	n.Plugin.AwaitLog("the store belongs to this cluster from now on")
	n.Plugin.Stop()

	n.API.SetCluster("cluster-2")
	n.Start()
	n.Plugin.AwaitLog("nothing is removed from the store")
	n.Plugin.AwaitLog("--adopt-store")
	n.AwaitAnswer("/readyz", 200, "ok")
	n.Plugin.Stop()

	n.Start("--adopt-store")
	n.Plugin.AwaitLog("the store belongs to this cluster from now on")
	n.Plugin.Stop()
	n.Start()
	n.AwaitAnswer("/readyz", 200, "ok")
}

// What was tried without a cluster is not a cluster's.
func TestAStandaloneStoreInACluster(t *testing.T) {
	t.Parallel()
	n := newClusterNode(t)
	n.Start("--kubeconfig=", "--standalone")
	n.Plugin.Stop()
	n.Start()
	n.Plugin.AwaitLog("nothing is removed from the store")
}
