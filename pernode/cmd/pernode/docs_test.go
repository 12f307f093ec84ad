package main

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/codes"
)

// The references that users read.
const (
	flagsPage   = "../../docs/reference/flags.md"
	metricsPage = "../../docs/reference/metrics.md"
)

func TestTheFlagsPageListsEveryFlagWithItsDefault(t *testing.T) {
	page, err := os.ReadFile(flagsPage)
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]string)
	row := regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\| (?:`([^`]*)`|none) \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(string(page), -1) {
		documented[match[1]] = match[2]
	}
	newFlags(&options{}).VisitAll(func(f *flag.Flag) {
		value, found := documented[f.Name]
		switch {
		case !found:
			t.Errorf("--%s has no row", f.Name)
		case value != f.DefValue:
			t.Errorf("--%s has the default %q, the page says %q", f.Name, f.DefValue, value)
		}
		delete(documented, f.Name)
	})
	for name := range documented {
		t.Errorf("--%s has a row and is no flag", name)
	}
}

// series is what one row of the metrics page, or one family of a scrape, says.
type series struct{ kind, labels string }

func TestTheMetricsPageListsEverySeries(t *testing.T) {
	t.Parallel()
	documented := readMetricsPage(t)

	n := newNode(t, "h1")
	n.start()
	n.mustPublish("h1", 1)
	wantCode(t, n.publish(volume("h1"), pod(2)), codes.FailedPrecondition)
	await(t, "a first measurement and a first sweep", func() bool {
		return n.scrape()["per_node_copy_bytes"] != nil && n.figure("per_node_last_sweep_timestamp_seconds") > 0
	})
	exposed := make(map[string]series)
	for name, family := range n.scrape() {
		exposed[name] = series{strings.ToLower(family.GetType().String()), labelsOf(family)}
	}

	if len(exposed) == 0 {
		t.Fatal("the scrape is empty")
	}
	for name, is := range exposed {
		if says, found := documented[name]; !found {
			t.Errorf("%s is exposed and has no row", name)
		} else if says != is {
			t.Errorf("%s is a %s with the labels %q, the page says %s and %q", name, is.kind, is.labels, says.kind, says.labels)
		}
	}
	for name := range documented {
		if _, found := exposed[name]; !found {
			t.Errorf("%s has a row and is not exposed", name)
		}
	}
}

func readMetricsPage(t *testing.T) map[string]series {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	documented := make(map[string]series)
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(strings.ReplaceAll(string(page), "| |", "|  |"), -1) {
		labels := regexp.MustCompile("[a-z_]+").FindAllString(match[3], -1)
		slices.Sort(labels)
		documented[match[1]] = series{match[2], strings.Join(labels, " ")}
	}
	return documented
}

func labelsOf(family *dto.MetricFamily) string {
	names := make(map[string]bool)
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			names[label.GetName()] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}
