package page

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
)

// Series is what one row of a page, or one family of a scrape, says of a metric.
type Series struct {
	Kind   string // counter, gauge or histogram.
	Labels string // Their names, sorted, with a blank between two.
}

// Documented are the series that a text has rows for, by name.
func Documented(text string) map[string]Series {
	found := make(map[string]Series)
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(strings.ReplaceAll(text, "| |", "|  |"), -1) {
		labels := regexp.MustCompile("[a-z_]+").FindAllString(match[3], -1)
		slices.Sort(labels)
		found[match[1]] = Series{match[2], strings.Join(labels, " ")}
	}
	return found
}

// CompareSeries wants a row for each series that is exposed, saying what it is, and no other
// row but those of the names that may be missing: of what the test did not have the driver do.
func CompareSeries(t testing.TB, documented map[string]Series, exposed map[string]*dto.MetricFamily, mayMiss map[string]Series) {
	t.Helper()
	if len(exposed) == 0 {
		t.Fatal("the scrape is empty")
	}
	for name, family := range exposed {
		is := Series{strings.ToLower(family.GetType().String()), labelsOf(family)}
		if says, found := documented[name]; !found {
			t.Errorf("%s is exposed and has no row", name)
		} else if says != is {
			t.Errorf("%s is a %s with the labels %q, the page says %s and %q", name, is.Kind, is.Labels, says.Kind, says.Labels)
		}
	}
	for name := range documented {
		_, isExposed := exposed[name]
		if _, may := mayMiss[name]; !isExposed && !may {
			t.Errorf("%s has a row and is not exposed", name)
		}
	}
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
