package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"google.golang.org/grpc"

	"liken.sh/csicommon/build"
	"liken.sh/csicommon/httplistener"
	"liken.sh/csicommon/nodeplugin"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/telemetry"
	"liken.sh/gitvolume/internal/controller"
	"liken.sh/gitvolume/internal/driver"
)

// runController is the command controller.
func runController(arguments []string) int {
	var o controllerOptions
	return nodeplugin.Process{
		Flags: newControllerFlags(&o), Version: &o.version, Reword: reworded, Check: o.check,
		About: "gitvolume controller checks the classes of volumes, and tells what to write instead of asking for one.",
		Start: func(ctx context.Context) (nodeplugin.Running, error) {
			c, err := startController(ctx, o)
			if err != nil {
				return nodeplugin.Running{}, err
			}
			return nodeplugin.Running{Log: c.log, Run: c.run}, nil
		},
	}.Run(arguments)
}

// control is everything that runs in the process.
type control struct {
	options controllerOptions
	log     *slog.Logger

	telemetry *telemetry.Telemetry
	server    *server.Server
	socket    string
	listener  net.Listener
	http      *httplistener.Listener
}

// startController makes and binds all that can be refused at the start.
func startController(ctx context.Context, o controllerOptions) (*control, error) {
	c := &control{options: o}
	for _, step := range []func(context.Context) error{c.openLog, c.openTelemetry, c.listenCSI, c.listenHTTP} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

func (c *control) openLog(context.Context) (err error) {
	c.log, err = nodeplugin.OpenLog(c.options.logLevel, c.options.logFormat)
	return err
}

func (c *control) openTelemetry(ctx context.Context) (err error) {
	// Of several replicas each is a pod, whose name is its host name.
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("ask for the host name: %w", err)
	}
	c.telemetry, err = nodeplugin.OpenTelemetry(ctx, driver.Name, host, c.options.otlpEndpoint, c.log)
	return err
}

func (c *control) listenCSI(context.Context) (err error) {
	if c.socket, err = server.SocketPath(c.options.endpoint); err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	c.server, err = server.New(server.Config{
		Driver: driver.Name, Version: build.Version(), Codes: controller.Codes(), Capabilities: controller.PluginCapabilities(),
		Ready:    func(context.Context) error { return nil }, // There is nothing that could fail.
		Register: func(r grpc.ServiceRegistrar) { controller.Register(r, driver.Name) },
		Meter:    c.telemetry.Meter(), Log: c.log,
	})
	if err != nil {
		return err
	}
	listener, err := server.Listen(c.socket)
	if err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	c.listener = listener
	return nil
}

func (c *control) listenHTTP(context.Context) (err error) {
	if c.options.http == "" {
		return nil
	}
	if c.http, err = telemetry.Listen(c.options.http, c.telemetry.Handler(), c.probe, c.probe); err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	return nil
}

func (c *control) probe(ctx context.Context) error { return server.Probe(ctx, c.socket) }

// close gives up what was bound, for a start that failed.
func (c *control) close() error {
	if c.listener == nil {
		return nil
	}
	return c.listener.Close()
}

// run serves until ctx ends or a part fails: no new call then, and the running ones are
// finished.
func (c *control) run(ctx context.Context) error {
	address := ""
	parts := []func(context.Context) error{func(ctx context.Context) error { return c.server.Serve(ctx, c.listener) }}
	if c.http != nil {
		parts, address = append(parts, c.http.Serve), c.http.Address()
	}
	c.log.Info("starting", "driver", driver.Name, "version", build.Version(), "endpoint", c.socket, "http", address)
	err := nodeplugin.Together(ctx, parts...)
	if err := c.telemetry.Shutdown(context.WithoutCancel(ctx)); err != nil {
		c.log.Warn("the last metrics were not pushed", "error", err)
	}
	c.log.Info("stopped")
	return err
}
