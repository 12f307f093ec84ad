package main

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/process"
)

// awaitSweeps waits for so many sweeps without a failure.
func (n *node) awaitSweeps(count int) {
	n.T.Helper()
	last := n.Figure("per_node_last_sweep_timestamp_seconds")
	for range count {
		process.Await(n.T, "a sweep", func() bool {
			now := n.Figure("per_node_last_sweep_timestamp_seconds")
			isNew := now != last
			last = now
			return isNew
		})
	}
}

// awaitFailures waits for so many sweeps that fail from now on.
func (n *node) awaitFailures(count int) {
	n.T.Helper()
	before := n.Figure("per_node_sweep_failures_total")
	process.Await(n.T, "sweeps to fail", func() bool {
		return n.Figure("per_node_sweep_failures_total") >= before+float64(count)
	})
}

// awaitRemoval waits until the copy is gone from the store.
func (n *node) awaitRemoval(handle string) {
	n.T.Helper()
	process.Await(n.T, "the copy of "+handle+" to be removed", func() bool { return !exists(n.copyDir(handle)) })
}

// awaitEvents is AwaitEvents of pods, which are this plugin's.
func (n *node) awaitEvents(namespace string, want ...string) []corev1.Event {
	n.T.Helper()
	events := n.AwaitEvents(namespace, want...)
	for _, e := range events {
		wantOfThisPlugin(n.T, e)
	}
	return events
}

func wantOfThisPlugin(t testing.TB, e corev1.Event) {
	t.Helper()
	if e.Type != corev1.EventTypeWarning || e.Source.Component != "per-node.liken.sh" || e.Source.Host != "node-1" ||
		e.InvolvedObject.Kind != "Pod" || e.InvolvedObject.APIVersion != "v1" || e.InvolvedObject.UID == "" {
		t.Errorf("an Event is not a Warning of this plugin about a pod: %+v", e)
	}
}
