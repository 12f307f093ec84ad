package page

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// recordVariable in the environment has scrapes recorded anew. A flag would not reach the
// process in which a test with mounts runs.
const recordVariable = "RECORD_SCRAPES"

// CompareRecording wants the scrape to have the series that the recording in the file has,
// by names, types and names of labels: dashboards and alerts are tried on what is recorded.
// With RECORD_SCRAPES=1 in the environment it writes the file instead. Each word of the
// machine, a key of private, is recorded as its value.
func CompareRecording(t testing.TB, file, scrape string, private map[string]string) {
	t.Helper()
	if os.Getenv(recordVariable) != "" {
		record(t, file, scrape, private)
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; %s=1 records it", err, recordVariable)
	}
	want, got := seriesOf(t, string(recorded)), seriesOf(t, scrape)
	if !maps.Equal(want, got) {
		t.Errorf("the driver exposes %v, and %s has %v; %s=1 records it anew", got, file, want, recordVariable)
	}
}

func record(t testing.TB, file, scrape string, private map[string]string) {
	t.Helper()
	words := slices.Sorted(maps.Keys(private))
	slices.Reverse(words) // One that begins with another goes first.
	for _, word := range words {
		scrape = strings.ReplaceAll(scrape, word, private[word])
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(scrape), 0o644); err != nil {
		t.Fatal(err)
	}
}

// seriesOf are those of a scrape, by name.
func seriesOf(t testing.TB, scrape string) map[string]Series {
	t.Helper()
	found := make(map[string]Series)
	for name, family := range families(t, scrape) {
		found[name] = Series{strings.ToLower(family.GetType().String()), labelsOf(family)}
	}
	if len(found) == 0 {
		t.Fatal("the scrape is empty")
	}
	return found
}

func families(t testing.TB, scrape string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	found, err := parser.TextToMetricFamilies(strings.NewReader(scrape))
	if err != nil {
		t.Fatalf("parse the scrape: %v", err)
	}
	return found
}
