package main

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
)

// get returns what the plugin answers over HTTP.
func (n *node) get(path string) (code int, body string) {
	n.t.Helper()
	response, err := http.Get(n.plugin.address() + path)
	if err != nil {
		n.t.Fatalf("get %s: %v", path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		n.t.Fatalf("get %s: %v", path, err)
	}
	return response.StatusCode, string(data)
}

// scrape returns the metrics by name.
func (n *node) scrape() map[string]*dto.MetricFamily {
	n.t.Helper()
	response, err := http.Get(n.plugin.address() + "/metrics")
	if err != nil {
		n.t.Fatalf("scrape: %v", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		n.t.Fatalf("parse the scrape: %v", err)
	}
	return families
}

// figure is the sum of a metric's series, 0 for one that is not exposed.
func (n *node) figure(name string) float64 {
	n.t.Helper()
	sum := 0.0
	for _, series := range n.scrape()[name].GetMetric() {
		sum += series.GetGauge().GetValue() + series.GetCounter().GetValue()
	}
	return sum
}

// awaitSweeps waits for so many sweeps without a failure.
func (n *node) awaitSweeps(count int) {
	n.t.Helper()
	last := n.figure("per_node_last_sweep_timestamp_seconds")
	for range count {
		await(n.t, "a sweep", func() bool {
			now := n.figure("per_node_last_sweep_timestamp_seconds")
			isNew := now != last
			last = now
			return isNew
		})
	}
}

// awaitFailures waits for so many sweeps that fail from now on.
func (n *node) awaitFailures(count int) {
	n.t.Helper()
	before := n.figure("per_node_sweep_failures_total")
	await(n.t, "sweeps to fail", func() bool {
		return n.figure("per_node_sweep_failures_total") >= before+float64(count)
	})
}

// awaitRemoval waits until the copy is gone from the store.
func (n *node) awaitRemoval(handle string) {
	n.t.Helper()
	await(n.t, "the copy of "+handle+" to be removed", func() bool { return !exists(n.copyDir(handle)) })
}

// awaitEvents waits until the Events of a namespace, the oldest first, are as
// wanted, each given as "pod reason count".
func (n *node) awaitEvents(namespace string, want ...string) []corev1.Event {
	n.t.Helper()
	var events []corev1.Event
	var got []string
	defer func() {
		if n.t.Failed() {
			n.t.Logf("Events in %s: %q, want %q", namespace, got, want)
		}
	}()
	await(n.t, "the Events", func() bool {
		events, got = n.api.Events(namespace), nil
		for _, e := range events {
			got = append(got, fmt.Sprintf("%s %s %d", e.InvolvedObject.Name, e.Reason, e.Count))
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
	for _, e := range events {
		wantOfThisPlugin(n.t, e)
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

// takeDown makes the API server unreachable, until up is called.
func (n *node) takeDown() (up func()) {
	up = n.api.Inject(apiserver.Fault{Do: apiserver.Cut()})
	n.api.DropWatches()
	return up
}
