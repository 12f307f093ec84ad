package main

import (
	"net/http"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/csitest/apiserver"
)

// An API server that does not give a whole, right answer removes nothing.
func TestBadAnswer(t *testing.T) {
	for name, fault := range map[string]apiserver.Fault{
		"500":                    {Do: apiserver.Refuse(http.StatusInternalServerError)},
		"403":                    {Do: apiserver.Refuse(http.StatusForbidden)},
		"404 of a proxy":         {Do: apiserver.Page(http.StatusNotFound, "<html>no such site</html>")},
		"200 of a proxy":         {Do: apiserver.Page(http.StatusOK, "<html>log in</html>")},
		"empty object":           {Do: apiserver.Edit(func([]byte) []byte { return []byte("{}") })},
		"truncated":              {Do: apiserver.Truncate()},
		"connection cut":         {Do: apiserver.Cut()},
		"second page fails":      {Page: 2, Do: apiserver.Refuse(http.StatusInternalServerError)},
		"second page truncated":  {Page: 2, Do: apiserver.Truncate()},
		"second page of a proxy": {Page: 2, Do: apiserver.Page(http.StatusOK, "<html>log in</html>")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "h1")
			n.api.AddForeignVolumes(1200)
			n.start(sweepSoon...)
			n.leaveCopy(volume("h1"))
			n.restartWatching()
			fault.Verb, fault.Resource = "list", "persistentvolumes"
			repair := n.api.Inject(fault)
			n.api.DeleteVolume("h1")
			n.awaitFailures(2)
			n.wantKept("h1")
			repair()
			n.awaitRemoval("h1")
		})
	}
}

// Another cluster knows nothing of this store's volumes, until somebody says
// that it is theirs now.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.start(sweepSoon...)
	n.leaveCopy(volume("h1"))

	// It answers in the place of the first while the plugin runs.
	n.api.SetCluster("cluster-2")
	n.api.DeleteVolume("h1")
	n.awaitFailures(2)
	n.wantKept("h1")
	wantWords(t, n.plugin.log.String(), "cluster-1", "cluster-2")

	// It answers from the start.
	n.plugin.stop()
	n.start(sweepSoon...)
	n.plugin.awaitLog("--adopt-store")
	n.mustPublish("h1", 1)
	n.mustUnpublish("h1", 1)
	if n.figure("per_node_sweep_failures_total") == 0 {
		t.Error("the other cluster is not counted as a failure")
	}
	n.wantKept("h1")

	n.plugin.stop()
	n.start(append(sweepSoon, "--adopt-store")...)
	n.awaitRemoval("h1")
}

// What was tried without a cluster is not this cluster's to remove.
func TestStandaloneStoreInACluster(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.startUnregistered(ownNamespace(), "022", "--kubeconfig=", "--standalone")
	n.register()
	n.leaveCopy(volume("h1"))
	n.plugin.stop()
	n.start(sweepSoon...)
	n.plugin.awaitLog("--adopt-store")
	n.wantKept("h1")

	n.plugin.stop()
	n.start(append(sweepSoon, "--adopt-store")...)
	n.awaitRemoval("h1")
}

// Volumes work while the API server is down, and what was missed meanwhile is
// made good.
func TestAPIServerDownAndUp(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	up := n.takeDown()
	n.start(sweepSoon...)
	await(t, "the plugin to miss the API server", func() bool { return n.figure("per_node_sweep_failures_total") > 0 })
	n.leaveCopy(volume("h1"))
	n.mustPublish("h2", 2)
	writeFile(t, filepath.Join(n.target("h2", 2), "f"), "x")
	n.api.DeleteVolume("h1")
	n.wantKept("h1")
	up()
	n.awaitRemoval("h1")
	n.wantKept("h2")

	up = n.takeDown()
	n.mustUnpublish("h2", 2)
	n.api.DeleteVolume("h2")
	n.awaitSweeps(1)
	n.wantKept("h2")
	up()
	n.awaitRemoval("h2")
}
