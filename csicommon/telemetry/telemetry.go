// Package telemetry makes the instruments of a driver: an OpenTelemetry meter
// whose figures a Prometheus registry of the process's own exposes, and which
// can also be pushed over OTLP; and the one HTTP listener for metrics, liveness
// and readiness.
//
// It must never add to a name: what the driver's metric reference says is what
// a scrape shows, without unit or counter suffixes and without scope labels.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// noLimit lifts the SDK's default of 2,000 attribute sets an instrument: a
// volume beyond it would vanish into an overflow series.
const noLimit = 0

// Bounds of scrapes: more than a pair of Prometheus servers and a person ask for
// at once, and Prometheus's own default of how long it waits.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// Config says who measures and where to push.
type Config struct {
	Service string // the driver's name, service.name in OTLP
	Version string
	Node    string // service.instance.id in OTLP
	// OTLPEndpoint is "host:port" (plain text) or an http:// or https:// URL of a
	// collector's gRPC port; empty pushes nothing.
	OTLPEndpoint string
	Log          *slog.Logger
}

// Telemetry owns a process's metrics.
type Telemetry struct {
	registry *prometheus.Registry
	provider *sdk.MeterProvider
	meter    metric.Meter
}

// ErrEndpoint is wrapped when the OTLP endpoint is no address.
var ErrEndpoint = errors.New("not an OTLP endpoint")

// New makes the meter. A collector that cannot be reached is no error: pushing
// is tried again and again, and only logged.
func New(ctx context.Context, config Config) (*Telemetry, error) {
	registry := prometheus.NewRegistry()
	exposed, err := exporter.New(
		exporter.WithRegisterer(registry),
		exporter.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithoutSuffixes),
		exporter.WithoutScopeInfo(),
		exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("make the Prometheus exporter: %w", err)
	}
	options := []sdk.Option{
		sdk.WithReader(exposed),
		sdk.WithCardinalityLimit(noLimit),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", config.Service),
			attribute.String("service.version", config.Version),
			attribute.String("service.instance.id", config.Node))),
	}
	if config.OTLPEndpoint != "" {
		pusher, err := newPusher(ctx, config.OTLPEndpoint)
		if err != nil {
			return nil, err
		}
		options = append(options, sdk.WithReader(sdk.NewPeriodicReader(pusher)))
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			config.Log.Warn("pushing metrics failed", "error", err)
		}))
	}
	provider := sdk.NewMeterProvider(options...)
	return &Telemetry{registry: registry, provider: provider, meter: provider.Meter(config.Service)}, nil
}

func newPusher(ctx context.Context, endpoint string) (sdk.Exporter, error) {
	options, err := pushOptions(endpoint)
	if err != nil {
		return nil, err
	}
	pusher, err := otlpmetricgrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("make the OTLP exporter to %q: %w", endpoint, err)
	}
	return pusher, nil
}

func pushOptions(endpoint string) ([]otlpmetricgrpc.Option, error) {
	wrong := fmt.Errorf("%q is neither host:port nor an http:// or https:// URL: %w", endpoint, ErrEndpoint)
	if strings.Contains(endpoint, "://") {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, wrong
		}
		return []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpointURL(endpoint)}, nil
	}
	_, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		return nil, wrong
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, wrong
	}
	return []otlpmetricgrpc.Option{otlpmetricgrpc.WithEndpoint(endpoint), otlpmetricgrpc.WithInsecure()}, nil
}

// Meter makes instruments.
func (t *Telemetry) Meter() metric.Meter { return t.meter }

// Handler answers a Prometheus scrape, and 503 when too many run or a figure
// takes too long to find out.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: scrapeTimeout})
}

// Shutdown pushes what is pending over OTLP, for a moment only, and stops: a
// collector that is down must not hold up the update of a plugin.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shutdownTimeout)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
