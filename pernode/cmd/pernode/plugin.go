package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"

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
	prober    *server.Prober
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
			return nil, err
		}
	}
	return p, nil
}

func (p *plugin) openLog(context.Context) (err error) {
	p.log, err = logging.New(os.Stderr, p.options.logLevel, p.options.logFormat)
	return err
}

func (p *plugin) openTelemetry(ctx context.Context) (err error) {
	p.telemetry, err = telemetry.New(ctx, telemetry.Config{
		Service: driver.Name, Version: build.Version(), Node: p.options.nodeID,
		OTLPEndpoint: p.options.otlpEndpoint, Log: p.log,
	})
	return err
}

func (p *plugin) openStore(context.Context) error {
	mounts, err := mount.New(mount.Config{Scratch: filepath.Join(p.options.store, copies.ScratchDir), Log: p.log})
	if err != nil {
		return err
	}
	kubeletDir, err := filepath.EvalSymlinks(p.options.kubeletDir)
	if err != nil {
		return err
	}
	p.store, err = copies.Open(copies.Config{
		Dir: p.options.store, KubeletDir: kubeletDir, RequireMount: p.options.requireMount,
		Mounts: mounts, Log: p.log,
	})
	if err != nil {
		return err
	}
	p.inspector = inspect.New(inspect.Config{Store: p.store, Log: p.log})
	return nil
}

func (p *plugin) openMetrics(context.Context) (err error) {
	p.metrics, err = metrics.New(metrics.Config{
		Meter: p.telemetry.Meter(), Store: p.store, LastUsage: p.inspector.LastUsage,
		Sweeps: p.cluster.figures, Log: p.log,
	})
	return err
}

func (p *plugin) openServer(context.Context) error {
	socket, err := server.SocketPath(p.options.endpoint)
	if err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	service := driver.New(driver.Config{
		NodeID: p.options.nodeID, Store: p.store, Sweeper: p.cluster.sweeper, Inspector: p.inspector,
		Events: p.cluster.events, Refused: p.metrics.Refused, Log: p.log,
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
	if p.prober, err = server.NewProber(socket); err != nil {
		return err
	}
	p.listener, err = server.Listen(socket)
	return err
}

func (p *plugin) openHTTP(context.Context) (err error) {
	if p.options.http != "" {
		p.http, err = telemetry.Listen(p.options.http, p.telemetry.Handler(), p.prober.Probe, p.ready)
	}
	return err
}

// httpAddress is the bound one: with port 0 only the log can tell which it is.
func (p *plugin) httpAddress() string {
	if p.http == nil {
		return ""
	}
	return p.http.Address()
}

// ready is true when the store is usable and the kubelet knows the plugin. A
// standalone plugin may have no kubelet, but not one that refused it.
func (p *plugin) ready(ctx context.Context) error {
	if p.options.standalone {
		return errors.Join(p.prober.Probe(ctx), p.kubelet.Refused())
	}
	return errors.Join(p.prober.Probe(ctx), p.kubelet.Registered())
}

// run serves until ctx ends or a part fails, and then stops in order: no new
// call, the running ones finished, the last Events posted.
func (p *plugin) run(ctx context.Context) error {
	p.log.Info("starting", "driver", driver.Name, "version", build.Version(), "node", p.options.nodeID,
		"store", p.options.store, "standalone", p.options.standalone, "http", p.httpAddress())
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	var behind sync.WaitGroup
	for _, part := range append(p.cluster.parts(), p.inspector.Run, p.store.EmptyTrash) {
		behind.Go(func() { part(background) })
	}
	var front sync.WaitGroup
	failures := make(chan error, 3)
	serve := func(part func(context.Context) error) {
		front.Go(func() {
			if err := part(ctx); err != nil {
				failures <- err
				stop(err)
			}
		})
	}
	// CSI first: the kubelet dials it the moment it sees the registration socket,
	// and the listener is bound already.
	serve(func(ctx context.Context) error { return p.server.Serve(ctx, p.listener) })
	serve(p.kubelet.Run)
	if p.http != nil {
		serve(p.http.Serve)
	}
	front.Wait()
	stopBackground()
	behind.Wait()
	close(failures)
	var errs []error
	for err := range failures {
		errs = append(errs, err)
	}
	p.log.Info("stopped")
	return errors.Join(append(errs, p.close())...)
}

func (p *plugin) close() error {
	// A collector that is down must not turn a clean stop into a failure.
	if err := p.telemetry.Shutdown(context.Background()); err != nil {
		p.log.Warn("the last metrics were not pushed", "error", err)
	}
	return errors.Join(p.prober.Close(), p.store.Close())
}
