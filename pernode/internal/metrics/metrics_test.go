package metrics

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"liken.sh/csicommon/telemetry"
	"liken.sh/csicommon/usage"
	"liken.sh/pernode/internal/inspect"
	"liken.sh/pernode/internal/sweep"
)

func TestCopies(t *testing.T) {
	for _, row := range []struct {
		name    string
		figures inspect.Figures
		want    []string // Lines, in the order of their names.
	}{
		{"nothing known yet", inspect.Figures{}, nil},
		{"an empty store", inspect.Figures{Counted: true}, []string{"per_node_copies 0", "per_node_held_copies 0"}},
		{
			"all of it",
			inspect.Figures{
				Counted: true, Copies: 2, Held: 1, Bytes: map[string]int64{"h1": 4096},
				Sized: true, Space: usage.Space{Bytes: 100, AvailableBytes: 50},
			},
			[]string{
				"per_node_copies 2", `per_node_copy_bytes{volume="h1"} 4096`, "per_node_held_copies 1",
				"per_node_store_available_bytes 50", "per_node_store_capacity_bytes 100",
			},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			lines := scrape(t, Config{
				Copies: func(context.Context) inspect.Figures { return row.figures },
				Sweeps: func() sweep.Figures { return sweep.Figures{} },
			})
			var got []string
			for _, line := range lines {
				if strings.HasPrefix(line, "per_node_cop") && !strings.Contains(line, "_total") ||
					strings.HasPrefix(line, "per_node_held") || strings.HasPrefix(line, "per_node_store") {
					got = append(got, line)
				}
			}
			if strings.Join(got, "\n") != strings.Join(row.want, "\n") {
				t.Errorf("scraped\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(row.want, "\n"))
			}
		})
	}
}

func TestSweeps(t *testing.T) {
	config := Config{
		Copies: func(context.Context) inspect.Figures { return inspect.Figures{} },
		Sweeps: func() sweep.Figures { return sweep.Figures{Removed: 3, Failures: 2} },
	}
	text := strings.Join(scrape(t, config), "\n")
	for _, want := range []string{"per_node_copies_removed_total 3", "per_node_sweep_failures_total 2", "csi_events_dropped_total 0"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "per_node_last_sweep_timestamp_seconds") {
		t.Errorf("a sweep is told that never was:\n%s", text)
	}
	config.Sweeps = func() sweep.Figures { return sweep.Figures{Last: time.Unix(1000, 0)} }
	if text := strings.Join(scrape(t, config), "\n"); !strings.Contains(text, "per_node_last_sweep_timestamp_seconds 1000\n") {
		t.Errorf("scraped\n%s", text)
	}
}

// scrape gives the lines without the labels that every series has, and without
// comments.
func scrape(t *testing.T, config Config) []string {
	t.Helper()
	tel, err := telemetry.New(t.Context(), telemetry.Config{Service: "test", Node: "n", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	config.Meter = tel.Meter()
	if _, err := New(config); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	tel.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if answer.Code != 200 {
		t.Fatal(answer.Body.String())
	}
	var lines []string
	for line := range strings.Lines(answer.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return append(lines, "")
}
