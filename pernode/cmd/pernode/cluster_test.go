package main

import (
	"net/http"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/process"
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
			n.API.AddForeignVolumes(1200)
			n.Start(sweepSoon...)
			n.leaveCopy(volume("h1"))
			n.restartWatching()
			fault.Verb, fault.Resource = "list", "persistentvolumes"
			repair := n.API.Inject(fault)
			n.API.DeleteVolume("h1")
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
	n.Start(sweepSoon...)
	n.leaveCopy(volume("h1"))

	// It answers in the place of the first while the plugin runs.
	n.API.SetCluster("cluster-2")
	n.API.DeleteVolume("h1")
	n.awaitFailures(2)
	n.wantKept("h1")
	wantWords(t, n.Plugin.Log.String(), "cluster-1", "cluster-2")

	// It answers from the start.
	n.Plugin.Stop()
	n.Start(sweepSoon...)
	n.Plugin.AwaitLog("--adopt-store")
	n.mustPublish("h1", 1)
	n.mustUnpublish("h1", 1)
	if n.Figure("per_node_sweep_failures_total") == 0 {
		t.Error("the other cluster is not counted as a failure")
	}
	n.wantKept("h1")

	n.Plugin.Stop()
	n.Start(append(sweepSoon, "--adopt-store")...)
	n.awaitRemoval("h1")
}

// What was tried without a cluster is not this cluster's to remove.
func TestStandaloneStoreInACluster(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.StartUnregistered(n.Command("--kubeconfig=", "--standalone"))
	n.Register()
	n.leaveCopy(volume("h1"))
	n.Plugin.Stop()
	n.Start(sweepSoon...)
	n.Plugin.AwaitLog("--adopt-store")
	n.wantKept("h1")

	n.Plugin.Stop()
	n.Start(append(sweepSoon, "--adopt-store")...)
	n.awaitRemoval("h1")
}

// Volumes work while the API server is down, and what was missed meanwhile is
// made good.
func TestAPIServerDownAndUp(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1", "h2")
	up := n.TakeDown()
	n.Start(sweepSoon...)
	process.Await(t, "the plugin to miss the API server", func() bool { return n.Figure("per_node_sweep_failures_total") > 0 })
	n.leaveCopy(volume("h1"))
	n.mustPublish("h2", 2)
	writeFile(t, filepath.Join(n.Target("h2", 2), "f"), "x")
	n.API.DeleteVolume("h1")
	n.wantKept("h1")
	up()
	n.awaitRemoval("h1")
	n.wantKept("h2")

	up = n.TakeDown()
	n.mustUnpublish("h2", 2)
	n.API.DeleteVolume("h2")
	n.awaitSweeps(1)
	n.wantKept("h2")
	up()
	n.awaitRemoval("h2")
}
