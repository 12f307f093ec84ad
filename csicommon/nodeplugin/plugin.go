// Package nodeplugin is what the processes of all node plugins have in common: the flags,
// what is opened by them in which order, CSI and registration and HTTP beside each other,
// and an end that cuts no call off.
//
// It must never know a driver or decide anything about a volume, never serve before all
// that can be refused at the start was found well, and never let a disk that does not
// answer, or a collector that is down, keep a process from ending.
package nodeplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"go.opentelemetry.io/otel/metric"
	"k8s.io/client-go/rest"

	"liken.sh/csicommon/build"
	"liken.sh/csicommon/event"
	"liken.sh/csicommon/httplistener"
	"liken.sh/csicommon/logging"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/registration"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/telemetry"
)

// Config says whose plugin it is.
type Config struct {
	Driver  string // The CSI driver's name.
	Options Options
	// Scratch is the directory of mount.Config, below the store.
	Scratch string
}

// Plugin is what every plugin runs. What is exported is set by Open, or by Connect where
// that is said, and is only read then.
type Plugin struct {
	Log    *slog.Logger
	Meter  metric.Meter
	Mounts *mount.System
	// KubeletDir is the kubelet's directory without links, as mounts are known by it.
	KubeletDir string
	// Events go to the cluster, or to the log of a plugin without one. Set by Connect.
	Events event.Recorder
	// View is nil without a cluster, and Client what it asks the API server with. Set by
	// Connect.
	View   *persistentvolume.View
	Client rest.Interface

	config    Config
	telemetry *telemetry.Telemetry
	poster    *event.Poster
	store     Store
	server    *server.Server
	listener  net.Listener
	socket    string
	kubelet   *registration.Registration
	http      *httplistener.Listener
}

// Open opens what needs no store. Then come the driver's store, Connect, Listen, and Run.
func Open(ctx context.Context, config Config) (*Plugin, error) {
	p := &Plugin{config: config}
	for _, step := range []func(context.Context) error{p.openLog, p.openTelemetry, p.openMounts} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Close gives up what Listen bound, so that no socket is left behind that nobody serves.
// It is for a start that failed: Run ends it all by itself.
func (p *Plugin) Close() error {
	if p.listener == nil {
		return nil
	}
	return p.listener.Close()
}

func (p *Plugin) openLog(context.Context) (err error) {
	p.Log, err = OpenLog(p.config.Options.LogLevel, p.config.Options.LogFormat)
	return err
}

// OpenLog makes the log of a process, on standard error. Its errors name the flag.
func OpenLog(level, format string) (*slog.Logger, error) {
	log, err := logging.New(os.Stderr, level, format)
	switch {
	case errors.Is(err, logging.ErrLevel):
		return nil, fmt.Errorf("--log-level: %w", err)
	case errors.Is(err, logging.ErrFormat):
		return nil, fmt.Errorf("--log-format: %w", err)
	}
	return log, err
}

func (p *Plugin) openTelemetry(ctx context.Context) (err error) {
	o := p.config.Options
	if p.telemetry, err = OpenTelemetry(ctx, p.config.Driver, o.NodeID, o.OTLPEndpoint, p.Log); err != nil {
		return err
	}
	p.Meter = p.telemetry.Meter()
	return nil
}

// OpenTelemetry makes the metrics of a driver's process, of which there is one on a node or
// in a pod of that name. Its errors name the flag.
func OpenTelemetry(ctx context.Context, driver, name, otlpEndpoint string, log *slog.Logger) (*telemetry.Telemetry, error) {
	made, err := telemetry.New(ctx, telemetry.Config{
		Service: driver, Version: build.Version(), Node: name, OTLPEndpoint: otlpEndpoint, Log: log,
	})
	if errors.Is(err, telemetry.ErrEndpoint) {
		return nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return made, err
}

func (p *Plugin) openMounts(context.Context) (err error) {
	if p.Mounts, err = mount.New(mount.Config{Scratch: p.config.Scratch, Log: p.Log}); err != nil {
		return err
	}
	p.KubeletDir, err = filepath.EvalSymlinks(p.config.Options.KubeletDir)
	return err
}
