package bench

import (
	"slices"
	"testing"
	"time"
)

// samples are the times of one kind of operation.
type samples []time.Duration

// time runs do and keeps how long it took.
func (s *samples) time(do func()) {
	start := time.Now()
	do()
	*s = append(*s, time.Since(start))
}

// quantile returns the time that a share q, up to 1, of the operations did not exceed.
func (s samples) quantile(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s samples) p50() time.Duration { return s.quantile(.50) }
func (s samples) p95() time.Duration { return s.quantile(.95) }

// report adds the operation's figures to the benchmark's, in microseconds.
func (s samples) report(b *testing.B, name string) {
	b.ReportMetric(float64(s.p50().Nanoseconds())/1e3, name+"-p50-µs")
	b.ReportMetric(float64(s.p95().Nanoseconds())/1e3, name+"-p95-µs")
}

// hideTotal drops ns/op: one turn of these benchmarks is several operations.
func hideTotal(b *testing.B) { b.ReportMetric(0, "ns/op") }

func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
