// Package metrics exposes the per-node driver's figures. Each is read from the
// sweeper or the inspector at the moment of a scrape, so a series of a volume goes
// with its copy.
//
// It must never keep a figure that somebody else keeps already, and never touch
// the disk or the mount table itself: one disk that does not answer would take
// away the figures of all volumes.
package metrics

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"liken.sh/csicommon/telemetry"
	"liken.sh/pernode/internal/inspect"
	"liken.sh/pernode/internal/sweep"
)

// Config names the sources. None of them may wait for a disk that does not
// answer: a scrape would fail for all volumes.
type Config struct {
	Meter  metric.Meter
	Copies func(ctx context.Context) inspect.Figures
	Sweeps func() sweep.Figures
}

// Metrics are the figures that are counted as things happen.
type Metrics struct {
	refusals metric.Int64Counter
	dropped  metric.Int64Counter
}

// New registers every instrument.
func New(config Config) (*Metrics, error) {
	m := &Metrics{}
	var err error
	if m.refusals, err = config.Meter.Int64Counter("per_node_publish_refusals_total",
		metric.WithDescription("Publishes refused, by the reason of their Event.")); err != nil {
		return nil, fmt.Errorf("make a counter: %w", err)
	}
	if m.dropped, err = config.Meter.Int64Counter("csi_events_dropped_total",
		metric.WithDescription("Events that could not be posted.")); err != nil {
		return nil, fmt.Errorf("make a counter: %w", err)
	}
	m.dropped.Add(context.Background(), 0) // an alert on its rate wants it to exist
	return m, observe(config)
}

// Refused counts a refused publish.
func (m *Metrics) Refused(ctx context.Context, reason string) {
	m.refusals.Add(context.WithoutCancel(ctx), 1, metric.WithAttributes(attribute.String("reason", reason)))
}

// EventsDropped counts Events that could not be posted.
func (m *Metrics) EventsDropped(occurrences int) {
	m.dropped.Add(context.Background(), int64(occurrences))
}

// instruments are those read at a scrape.
type instruments struct {
	copyBytes, copies, held, capacity, available, build metric.Int64ObservableGauge
	lastSweep                                           metric.Float64ObservableGauge
	removed, failures                                   metric.Int64ObservableCounter
}

func observe(config Config) error {
	made := &telemetry.Instruments{Meter: config.Meter}
	i := newInstruments(made)
	return made.Observe(func(ctx context.Context, o metric.Observer) error {
		i.observeCopies(o, config.Copies(ctx))
		i.observeSweeps(o, config.Sweeps())
		telemetry.ObserveBuild(o, i.build)
		return nil
	})
}

func newInstruments(made *telemetry.Instruments) (i instruments) {
	made.Gauge(&i.copyBytes, "per_node_copy_bytes", "Allocated bytes of a volume's copy on this node, as last measured.")
	made.Gauge(&i.copies, "per_node_copies", "Copies on this node.")
	made.Gauge(&i.held, "per_node_held_copies", "Copies a pod holds.")
	made.Gauge(&i.capacity, "per_node_store_capacity_bytes", "Size of the store's file system.")
	made.Gauge(&i.available, "per_node_store_available_bytes", "Bytes of the store's file system that can still be taken.")
	made.Gauge(&i.build, "per_node_build_info", "1, labelled with the build.")
	made.Counter(&i.removed, "per_node_copies_removed_total", "Copies removed because their PersistentVolume is gone.")
	made.Counter(&i.failures, "per_node_sweep_failures_total", "Sweeps that could not decide or remove something.")
	made.Time(&i.lastSweep, "per_node_last_sweep_timestamp_seconds", "Unix time of the last sweep without a failure.")
	return i
}

// observeCopies leaves out what is not known yet: a 0 would be a lie.
func (i instruments) observeCopies(o metric.Observer, figures inspect.Figures) {
	if figures.Counted {
		o.ObserveInt64(i.copies, int64(figures.Copies))
		o.ObserveInt64(i.held, int64(figures.Held))
	}
	for volume, bytes := range figures.Bytes {
		o.ObserveInt64(i.copyBytes, bytes, metric.WithAttributes(attribute.String("volume", volume)))
	}
	if figures.Sized {
		o.ObserveInt64(i.capacity, figures.Space.Bytes)
		o.ObserveInt64(i.available, figures.Space.AvailableBytes)
	}
}

func (i instruments) observeSweeps(o metric.Observer, figures sweep.Figures) {
	o.ObserveInt64(i.removed, figures.Removed)
	o.ObserveInt64(i.failures, figures.Failures)
	if !figures.Last.IsZero() {
		o.ObserveFloat64(i.lastSweep, float64(figures.Last.UnixNano())/1e9)
	}
}
