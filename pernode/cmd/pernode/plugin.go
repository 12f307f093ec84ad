package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"liken.sh/csicommon/build"
	"liken.sh/csicommon/logging"
	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/registration"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/telemetry"
	"liken.sh/pernode/internal/copies"
	"liken.sh/pernode/internal/driver"
	"liken.sh/pernode/internal/inspect"
	"liken.sh/pernode/internal/metrics"
)

// standaloneCluster is recorded as the cluster of a store that was used without
// one, so that the first real cluster does not sweep it empty.
const standaloneCluster = "standalone"

// plugin is everything that runs in the process.
type plugin struct {
	options   options
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	metrics   *metrics.Metrics
	store     *copies.Store
	inspector *inspect.Inspector
	cluster   cluster
	server    *server.Server
	listener  net.Listener
	socket    string
	mounts    *mount.System
	kubelet   *registration.Registration
	http      *telemetry.Listener
}

// newPlugin makes and binds all that can be refused at the start.
func newPlugin(ctx context.Context, o options) (*plugin, error) {
	p := &plugin{options: o}
	for _, step := range []func(context.Context) error{
		p.openLog, p.openTelemetry, p.openStore, p.openCluster, p.openMetrics, p.openServer, p.openHTTP,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, p.abandon())
		}
	}
	return p, nil
}

// abandon leaves no socket behind that nobody serves.
func (p *plugin) abandon() error {
	if p.listener == nil {
		return nil
	}
	return p.listener.Close()
}

func (p *plugin) openLog(context.Context) (err error) {
	p.log, err = logging.New(os.Stderr, p.options.logLevel, p.options.logFormat)
	switch {
	case errors.Is(err, logging.ErrLevel):
		return fmt.Errorf("--log-level: %w", err)
	case errors.Is(err, logging.ErrFormat):
		return fmt.Errorf("--log-format: %w", err)
	}
	return err
}

func (p *plugin) openTelemetry(ctx context.Context) (err error) {
	p.telemetry, err = telemetry.New(ctx, telemetry.Config{
		Service: driver.Name, Version: build.Version(), Node: p.options.nodeID,
		OTLPEndpoint: p.options.otlpEndpoint, Log: p.log,
	})
	if errors.Is(err, telemetry.ErrEndpoint) {
		return fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return err
}

func (p *plugin) openStore(context.Context) (err error) {
	p.mounts, err = mount.New(mount.Config{Scratch: filepath.Join(p.options.store, copies.ScratchDir), Log: p.log})
	if err != nil {
		return err
	}
	kubeletDir, err := filepath.EvalSymlinks(p.options.kubeletDir)
	if err != nil {
		return err
	}
	p.store, err = copies.Open(copies.Config{
		Dir: p.options.store, KubeletDir: kubeletDir, RequireMount: p.options.requireMount,
		Mounts: p.mounts, Log: p.log,
	})
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	p.inspector = inspect.New(inspect.Config{Store: p.store, Log: p.log})
	return nil
}

func (p *plugin) openMetrics(context.Context) (err error) {
	p.metrics, err = metrics.New(metrics.Config{
		Meter: p.telemetry.Meter(), Copies: p.inspector.Figures, Sweeps: p.cluster.figures,
	})
	return err
}

func (p *plugin) openServer(context.Context) (err error) {
	if p.socket, err = server.SocketPath(p.options.endpoint); err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	service := driver.New(driver.Config{
		NodeID: p.options.nodeID, Store: p.store, Sweeper: p.cluster.sweeper, Inspector: p.inspector,
		Events: p.cluster.events, Refused: p.metrics.Refused,
	})
	p.server, err = server.New(server.Config{
		Driver: driver.Name, Version: build.Version(), Codes: driver.Codes(), Ready: p.store.Usable,
		Register: func(r grpc.ServiceRegistrar) { csi.RegisterNodeServer(r, service) },
		Meter:    p.telemetry.Meter(), Log: p.log,
	})
	if err != nil {
		return err
	}
	if p.kubelet, err = registration.New(registration.Config{KubeletDir: p.options.kubeletDir, Driver: driver.Name, Log: p.log}); err != nil {
		return fmt.Errorf("--kubelet-dir: %w", err)
	}
	if p.listener, err = server.Listen(p.socket); err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	p.warnOfOtherSocket()
	return nil
}

// warnOfOtherSocket tells of an --endpoint that is not the socket the kubelet
// will dial, under whatever path: registration would be refused for no visible
// reason. A conformance tool may well want it so.
func (p *plugin) warnOfOtherSocket() {
	own, err := os.Lstat(p.socket)
	if err != nil {
		p.log.Warn("the CSI socket cannot be looked at", "endpoint", p.socket, "error", err)
		return
	}
	if dialled, err := os.Lstat(p.kubelet.Endpoint()); err != nil || !os.SameFile(own, dialled) {
		p.log.Warn("the kubelet will dial another socket than the plugin serves", "endpoint", p.socket, "kubelet-dials", p.kubelet.Endpoint())
	}
}

func (p *plugin) openHTTP(context.Context) (err error) {
	if p.options.http == "" {
		return nil
	}
	if p.http, err = telemetry.Listen(p.options.http, p.telemetry.Handler(), p.probe, p.ready); err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	return nil
}
