package report

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"liken.sh/csicommon/telemetry"
)

const (
	buildName = "git_csi_build_info"
	buildSays = "1, labelled with the build."
)

// Build has scrapes of a process that has no volumes tell which build it is, and by component
// which part of the driver, as a pod's label app.kubernetes.io/component does.
func Build(meter metric.Meter, component string) error {
	made := telemetry.Instruments{Meter: meter}
	var gauge metric.Int64ObservableGauge
	made.Gauge(&gauge, buildName, buildSays)
	return made.Observe(func(_ context.Context, o metric.Observer) error {
		observeBuild(o, gauge, component)
		return nil
	})
}

func observeBuild(o metric.Observer, gauge metric.Int64ObservableGauge, component string) {
	telemetry.ObserveBuild(o, gauge, attribute.String("component", component))
}
