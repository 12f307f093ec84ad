package charts

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// float is a sample of a series.
type float struct {
	at    int64
	value float64
}

func (f float) T() int64                      { return f.at }
func (f float) F() float64                    { return f.value }
func (f float) H() *histogram.Histogram       { return nil }
func (f float) FH() *histogram.FloatHistogram { return nil }
func (f float) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (f float) Copy() chunks.Sample           { return f }

// scrapes are series with a sample a minute, which Prometheus's own engine is asked over.
type scrapes struct {
	series []storage.Series
	// start is when the first sample was taken, end the last.
	start, end time.Time
}

const minute = time.Minute

func (s *scrapes) add(of labels.Labels, values []float64) {
	var samples []chunks.Sample
	for i, value := range values {
		at := s.start.Add(time.Duration(i) * minute)
		if at.After(s.end) {
			s.end = at
		}
		if value != absent {
			samples = append(samples, float{at.UnixMilli(), value})
		}
	}
	s.series = append(s.series, storage.NewListSeries(of, samples))
}

// absent stands for a scrape without the series.
const absent = -1e300

// written are series in the notation of Prometheus's tests of rules, one a line: a sample
// a minute, of which 0+1x60 is 0 and then 60 times one more.
func written(t *testing.T, lines string) *scrapes {
	t.Helper()
	s := &scrapes{start: time.Unix(0, 0)}
	s.write(t, lines)
	return s
}

func (s *scrapes) write(t *testing.T, lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		of, sequence, err := parser.ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var values []float64
		for _, v := range sequence {
			if v.Omitted {
				v.Value = absent
			}
			values = append(values, v.Value)
		}
		s.add(of, values)
	}
}

// replayed has what was recorded scraped for so many minutes, by the labels that a
// PodMonitor gives. What is counted happens once more each minute; a gauge stays, but for
// the times of a node that goes on as it did.
func (s *scrapes) replayed(t *testing.T, recording string, minutes int, goesOn bool, target map[string]string) {
	t.Helper()
	textParser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := textParser.TextToMetricFamilies(strings.NewReader(recording))
	if err != nil {
		t.Fatal(err)
	}
	if s.start.IsZero() {
		s.start = recordedAt(families)
	}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			of := maps.Clone(target)
			for _, pair := range m.GetLabel() {
				of[pair.GetName()] = pair.GetValue() // As with honorLabels.
			}
			for _, one := range linesOf(name, m) {
				if goesOn && strings.HasSuffix(name, "_timestamp_seconds") {
					one.eachMinute = minute.Seconds()
				}
				s.add(labels.FromMap(with(of, one.labels)), one.during(minutes))
			}
		}
	}
}

// recordedAt is the latest time that a scrape tells, of something that has happened.
func recordedAt(families map[string]*dto.MetricFamily) time.Time {
	at := 1.0
	for name, family := range families {
		if !strings.HasSuffix(name, "_timestamp_seconds") {
			continue
		}
		for _, m := range family.GetMetric() {
			at = max(at, m.GetGauge().GetValue())
		}
	}
	return time.Unix(int64(at)+1, 0)
}

// line is one of a scrape.
type line struct {
	labels map[string]string
	value  float64
	// eachMinute is by how much the value grows.
	eachMinute float64
}

func linesOf(name string, m *dto.Metric) []line {
	named := func(suffix string, more map[string]string) map[string]string {
		return with(more, map[string]string{labels.MetricName: name + suffix})
	}
	counted := func(suffix string, more map[string]string, count float64) line {
		return line{named(suffix, more), count, count}
	}
	switch {
	case m.GetHistogram() != nil:
		h := m.GetHistogram()
		all := []line{counted("_count", nil, float64(h.GetSampleCount())), counted("_sum", nil, h.GetSampleSum())}
		for _, bucket := range h.GetBucket() {
			le := model.SampleValue(bucket.GetUpperBound()).String()
			all = append(all, counted("_bucket", map[string]string{"le": le}, float64(bucket.GetCumulativeCount())))
		}
		return all
	case m.GetCounter() != nil:
		return []line{counted("", nil, m.GetCounter().GetValue())}
	}
	return []line{{labels: named("", nil), value: m.GetGauge().GetValue()}}
}

func with(some, more map[string]string) map[string]string {
	all := make(map[string]string, len(some)+len(more))
	maps.Copy(all, some)
	maps.Copy(all, more)
	return all
}

func (l line) during(minutes int) []float64 {
	var values []float64
	for i := range minutes + 1 {
		values = append(values, l.value+l.eachMinute*float64(i))
	}
	return values
}

// Querier, and what follows, is a storage that the engine reads.
func (s *scrapes) Querier(int64, int64) (storage.Querier, error) { return s, nil }

func (s *scrapes) Close() error { return nil }

func (s *scrapes) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (s *scrapes) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (s *scrapes) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &selected{at: -1}
	for _, series := range s.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Labels().Get(m.Name)) }) {
			found.series = append(found.series, series)
		}
	}
	slices.SortFunc(found.series, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return found
}

// selected is what Select found.
type selected struct {
	series []storage.Series
	at     int
}

func (s *selected) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *selected) At() storage.Series                { return s.series[s.at] }
func (s *selected) Err() error                        { return nil }
func (s *selected) Warnings() annotations.Annotations { return nil }

// newEngine is one as Prometheus runs it.
func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: 5 * time.Minute, LookbackDelta: 5 * time.Minute})
}

// matrix is what the expression is at each minute of a time, of each series that it has
// there.
func (s *scrapes) matrix(t *testing.T, engine *promql.Engine, words string, from, to time.Time) promql.Matrix {
	t.Helper()
	query, err := engine.NewRangeQuery(t.Context(), s, nil, words, from, to, minute)
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	if result.Err != nil {
		t.Fatalf("%s: %v", words, result.Err)
	}
	found, err := result.Matrix()
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	copied := slices.Clone(found) // Close takes back what it is made of.
	for i := range copied {
		copied[i].Floats = slices.Clone(copied[i].Floats)
	}
	return copied
}

// last is what the expression is at the end, of each series.
func (s *scrapes) last(t *testing.T, engine *promql.Engine, words string) promql.Matrix {
	t.Helper()
	return s.matrix(t, engine, words, s.end, s.end)
}
