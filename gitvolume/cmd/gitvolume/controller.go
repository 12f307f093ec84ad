package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"google.golang.org/grpc"

	"liken.sh/csicommon/apiclient"
	"liken.sh/csicommon/build"
	"liken.sh/csicommon/httplistener"
	"liken.sh/csicommon/nodeplugin"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/telemetry"
	"liken.sh/gitvolume/internal/controller"
	"liken.sh/gitvolume/internal/driver"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/webhook"
)

// runController is the command controller.
func runController(arguments []string) int {
	var o controllerOptions
	return nodeplugin.Process{
		Flags: newControllerFlags(&o), Version: &o.version, Reword: reworded, Check: o.check,
		About: "gitvolume controller checks the classes of volumes, and has volumes pull when forges tell of a push.",
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
	server    *server.Server // nil: no CSI is served.
	socket    string
	listener  net.Listener
	http      *httplistener.Listener
	webhook   *webhook.Webhook // nil: none is served.
	forges    *httplistener.Listener
}

// startController makes and binds all that can be refused at the start.
func startController(ctx context.Context, o controllerOptions) (*control, error) {
	c := &control{options: o}
	for _, step := range []func(context.Context) error{c.openLog, c.openTelemetry, c.openWebhook, c.listenCSI, c.listenHTTP} {
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
	if c.telemetry, err = nodeplugin.OpenTelemetry(ctx, driver.Name, host, c.options.otlpEndpoint, c.log); err != nil {
		return err
	}
	return report.Build(c.telemetry.Meter(), c.component())
}

// component names what is served: forges are also served by a process of their own, which
// then needs no right but theirs.
func (c *control) component() string {
	if c.options.endpoint == "" {
		return "webhook"
	}
	return "controller"
}

// openWebhook binds the address of forges, and asks the API server nothing yet.
func (c *control) openWebhook(context.Context) error {
	if c.options.webhook == "" {
		return nil
	}
	client, err := apiclient.New(c.options.kubeconfig)
	if err != nil {
		return fmt.Errorf("find the API server (--kubeconfig names a file, an empty --webhook does without): %w", err)
	}
	c.webhook, err = webhook.New(webhook.Settings{
		Client: client, Driver: driver.Name, Annotation: published.DemandAnnotation, Meter: c.telemetry.Meter(), Log: c.log,
	})
	if err != nil {
		return err
	}
	if c.forges, err = httplistener.Listen(c.options.webhook, c.webhook, webhook.Bounds()); err != nil {
		return fmt.Errorf("--webhook: %w", err)
	}
	return nil
}

func (c *control) listenCSI(context.Context) (err error) {
	if c.options.endpoint == "" {
		return nil
	}
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
	if c.http, err = telemetry.Listen(c.options.http, c.telemetry.Handler(), c.probe, c.ready); err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	return nil
}

func (c *control) probe(ctx context.Context) error {
	if c.server == nil {
		return nil // This answer is all that it has to do.
	}
	return server.Probe(ctx, c.socket)
}

// ready is nil when CSI is served and forges are believed: a forge that comes before is told
// that the cluster cannot be read.
func (c *control) ready(ctx context.Context) error {
	if c.webhook == nil {
		return c.probe(ctx)
	}
	return errors.Join(c.probe(ctx), c.webhook.Ready(ctx))
}

// close gives up what was bound, for a start that failed.
func (c *control) close() error {
	var errs []error
	if c.listener != nil {
		errs = append(errs, c.listener.Close())
	}
	for _, bound := range []*httplistener.Listener{c.forges, c.http} {
		if bound != nil {
			errs = append(errs, bound.Close())
		}
	}
	return errors.Join(errs...)
}

// run serves until ctx ends or a part fails: no new call then, and the running ones are
// finished.
func (c *control) run(ctx context.Context) error {
	var parts []func(context.Context) error
	if c.server != nil {
		parts = append(parts, func(ctx context.Context) error { return c.server.Serve(ctx, c.listener) })
	}
	if c.http != nil {
		parts = append(parts, c.http.Serve)
	}
	if c.webhook != nil {
		parts = append(parts, c.webhook.Run, c.forges.Serve)
	}
	c.log.Info("starting", "driver", driver.Name, "version", build.Version(), "endpoint", c.socket,
		"http", addressOf(c.http), "webhook", addressOf(c.forges))
	err := nodeplugin.Together(ctx, parts...)
	if c.webhook != nil {
		c.webhook.End()
	}
	if err := c.telemetry.Shutdown(context.WithoutCancel(ctx)); err != nil {
		c.log.Warn("the last metrics were not pushed", "error", err)
	}
	c.log.Info("stopped")
	return err
}

// addressOf is the bound one, empty for none: with port 0 only the log can tell which it is.
func addressOf(bound *httplistener.Listener) string {
	if bound == nil {
		return ""
	}
	return bound.Address()
}
