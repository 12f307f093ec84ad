package nodetest

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const metricsPage = "../../../docs/reference/metrics.md"

// series is what one row of the metrics page, or one family of a scrape, says.
type series struct{ kind, labels string }

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

// ofWriting are the series of what only writeable volumes do.
func ofWriting(page string) map[string]series {
	_, section, _ := strings.Cut(page, "## Of a writeable volume\n")
	section, _, _ = strings.Cut(section, "\n## ")
	found := rows(section)
	for _, work := range []string{"commit", "rebase", "push"} {
		name := "git_csi_" + work + "_duration_seconds"
		found[name] = rows(page)[name]
	}
	return found
}

// ofTheNode is the page without the series of a controller.
func ofTheNode(t *testing.T, page string) string {
	t.Helper()
	before, rest, hasController := strings.Cut(page, "\n## Of the controller\n")
	_, after, hasMore := strings.Cut(rest, "\n## ")
	if !hasController || !hasMore {
		t.Fatal("the page has no section of the controller between others")
	}
	return before + "\n## " + after
}

// rows are those of the tables of series.
func rows(page string) map[string]series {
	found := make(map[string]series)
	row := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([^|]*) \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(strings.ReplaceAll(page, "| |", "|  |"), -1) {
		labels := regexp.MustCompile("[a-z_]+").FindAllString(match[3], -1)
		slices.Sort(labels)
		found[match[1]] = series{match[2], strings.Join(labels, " ")}
	}
	return found
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

func TestTheMetricsPageListsEverySeries(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	page := ofTheNode(t, string(text))
	documented, writing := rows(page), ofWriting(page)
	if len(writing) < 8 {
		t.Fatalf("the page has of writeable volumes only %v", writing)
	}
	n := newNode(t)
	n.remote.Grow("main", "a", "1")
	n.start()
	n.mustPublish(n.volume("v"), 1)
	await(t, "a first measurement", func() bool { return n.scrape()["git_csi_store_bytes"] != nil })
	exposed := n.scrape()
	for name, family := range exposed {
		is := series{strings.ToLower(family.GetType().String()), labelsOf(family)}
		if says, found := documented[name]; !found {
			t.Errorf("%s is exposed and has no row", name)
		} else if says != is {
			t.Errorf("%s is a %s with the labels %q, the page says %s and %q", name, is.kind, is.labels, says.kind, says.labels)
		}
	}
	for name := range documented {
		_, isExposed := exposed[name]
		if _, waits := writing[name]; !isExposed && !waits {
			t.Errorf("%s has a row and is not exposed", name)
		}
	}
}
