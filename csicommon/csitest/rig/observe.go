package rig

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/csitest/process"
)

// address is where the plugin serves HTTP.
func (n *Node) address() string {
	n.T.Helper()
	n.Plugin.AwaitLog("msg=starting")
	found := regexp.MustCompile(`msg=starting .* http=(\S+)`).FindStringSubmatch(n.Plugin.Log.String())
	if found == nil {
		n.T.Fatal("the plugin does not tell its HTTP address")
	}
	return "http://" + found[1]
}

// Get returns what the plugin answers over HTTP.
func (n *Node) Get(path string) (code int, body string) {
	n.T.Helper()
	client := http.Client{Timeout: process.Patience}
	response, err := client.Get(n.address() + path)
	if err != nil {
		n.T.Fatalf("get %s: %v", path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		n.T.Fatalf("get %s: %v", path, err)
	}
	return response.StatusCode, string(data)
}

// AwaitAnswer waits until the plugin answers so over HTTP.
func (n *Node) AwaitAnswer(path string, code int, words string) {
	n.T.Helper()
	process.Await(n.T, fmt.Sprintf("%s to answer %d with %q", path, code, words), func() bool {
		got, body := n.Get(path)
		return got == code && strings.Contains(body, words)
	})
}

// Scrape returns the metrics by name.
func (n *Node) Scrape() map[string]*dto.MetricFamily {
	n.T.Helper()
	_, body := n.Get("/metrics")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		n.T.Fatalf("parse the scrape: %v", err)
	}
	return families
}

// Figure is the sum of a metric's series, 0 for one that is not exposed.
func (n *Node) Figure(name string) float64 {
	n.T.Helper()
	sum := 0.0
	for _, series := range n.Scrape()[name].GetMetric() {
		sum += series.GetGauge().GetValue() + series.GetCounter().GetValue()
	}
	return sum
}

// AwaitEvents waits until the Events of a namespace, the oldest first, are as wanted, each
// given as "name reason count", the name being that of the object that it is about.
func (n *Node) AwaitEvents(namespace string, want ...string) []corev1.Event {
	n.T.Helper()
	var events []corev1.Event
	var got []string
	defer func() {
		if n.T.Failed() {
			n.T.Logf("Events in %s: %q, want %q", namespace, got, want)
		}
	}()
	process.Await(n.T, "the Events", func() bool {
		events, got = n.API.Events(namespace), nil
		for _, e := range events {
			got = append(got, fmt.Sprintf("%s %s %d", e.InvolvedObject.Name, e.Reason, e.Count))
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
	return events
}

// TakeDown makes the API server unreachable, until up is called.
func (n *Node) TakeDown() (up func()) {
	up = n.API.Inject(apiserver.Fault{Do: apiserver.Cut()})
	n.API.DropWatches()
	return up
}
