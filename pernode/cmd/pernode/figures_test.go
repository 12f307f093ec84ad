package main

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

// The figures are the store's.
func TestFigures(t *testing.T) {
	t.Parallel()
	n := busyNode(t)
	for name, want := range map[string]float64{
		"per_node_copies":                 1,
		"per_node_held_copies":            1,
		"per_node_publish_refusals_total": 1,
		"per_node_copies_removed_total":   1,
		"per_node_sweep_failures_total":   0,
		"per_node_build_info":             1,
		"csi_events_dropped_total":        0,
	} {
		if got := n.Figure(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if capacity, available := n.Figure("per_node_store_capacity_bytes"), n.Figure("per_node_store_available_bytes"); available <= 0 || capacity < available {
		t.Errorf("the store has %v of %v bytes", available, capacity)
	}
	if got := fmt.Sprint(n.Scrape()["per_node_copy_bytes"].GetMetric()); strings.Contains(got, "h2") || !strings.Contains(got, "h1") {
		t.Errorf("per_node_copy_bytes is %s, want h1 and not h2, which was removed", got)
	}
}

// busyNode is a node where everything that is counted has happened at least once.
func busyNode(t *testing.T) *node {
	t.Helper()
	n := newNode(t, "h1", "h2")
	n.Start(sweepSoon...)
	n.mustPublish("h1", 1)
	rig.WantCode(t, n.Publish(volume("h1"), rig.Pod(2)), codes.FailedPrecondition)
	n.leaveCopy(volume("h2"))
	n.API.DeleteVolume("h2")
	n.awaitRemoval("h2")
	process.Await(t, "the copy to be measured", func() bool { return n.Scrape()["per_node_copy_bytes"] != nil })
	n.awaitSweeps(1)
	return n
}
