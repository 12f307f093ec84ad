package telemetry

import (
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"liken.sh/csicommon/build"
)

// Instruments makes the instruments that are read at a scrape, so that the series of a
// volume go with it. After a first error it makes none, and Observe gives that error.
type Instruments struct {
	Meter metric.Meter

	made []metric.Observable
	err  error
}

// Gauge makes one of whole numbers.
func (i *Instruments) Gauge(into *metric.Int64ObservableGauge, name, description string) {
	if i.err == nil {
		*into, i.err = i.Meter.Int64ObservableGauge(name, metric.WithDescription(description))
		i.made = append(i.made, *into)
	}
}

// Time makes a gauge of a time, in seconds since 1970.
func (i *Instruments) Time(into *metric.Float64ObservableGauge, name, description string) {
	if i.err == nil {
		*into, i.err = i.Meter.Float64ObservableGauge(name, metric.WithDescription(description))
		i.made = append(i.made, *into)
	}
}

// Counter makes a counter of whole numbers.
func (i *Instruments) Counter(into *metric.Int64ObservableCounter, name, description string) {
	if i.err == nil {
		*into, i.err = i.Meter.Int64ObservableCounter(name, metric.WithDescription(description))
		i.made = append(i.made, *into)
	}
}

// Observe has a scrape call callback, which gives the values of what was made.
func (i *Instruments) Observe(callback metric.Callback) error {
	if i.err != nil {
		return fmt.Errorf("make the instruments: %w", i.err)
	}
	if _, err := i.Meter.RegisterCallback(callback, i.made...); err != nil {
		return fmt.Errorf("register the instruments: %w", err)
	}
	return nil
}

// ObserveBuild gives 1, labelled with the build, and with more if there is more to tell
// processes apart by.
func ObserveBuild(o metric.Observer, gauge metric.Int64ObservableGauge, more ...attribute.KeyValue) {
	o.ObserveInt64(gauge, 1, metric.WithAttributes(append(more,
		attribute.String("version", build.Version()),
		attribute.String("revision", build.Revision()),
		attribute.String("goversion", build.GoVersion()))...))
}
