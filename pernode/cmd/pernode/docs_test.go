package main

import (
	"testing"

	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/page"
	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// The references that users read.
const (
	flagsPage   = "../../docs/reference/flags.md"
	metricsPage = "../../docs/reference/metrics.md"
	// installPage has the ClusterRole; the chart's is compared with it where the
	// chart is tested.
	installPage = "../../docs/install.md"
)

func TestTheFlagsPageListsEveryFlagWithItsDefault(t *testing.T) {
	page.CompareFlags(t, flagsPage, newFlags(&options{}))
}

func TestTheMetricsPageListsEverySeries(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	n.mustPublish("h1", 1)
	rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(2)), codes.FailedPrecondition)
	process.Await(t, "a first measurement and a first sweep", func() bool {
		return n.Scrape()["per_node_copy_bytes"] != nil && n.Figure("per_node_last_sweep_timestamp_seconds") > 0
	})
	page.CompareSeries(t, page.Documented(page.Read(t, metricsPage)), n.Scrape(), nil)
}
