package nodeplugin

import (
	"context"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc"

	"liken.sh/csicommon/build"
	"liken.sh/csicommon/registration"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/telemetry"
)

// Store is what is asked of a driver's store.
type Store interface {
	// Usable returns nil while the volumes that exist can be served, and Writable when
	// new ones can be made too.
	Usable(context.Context) error
	Writable(context.Context) error
	// Cluster is the recorded cluster, empty when none was yet; the error wraps
	// storedir.ErrClusterLost when there is no record.
	Cluster() (string, error)
	SetCluster(uid string) error
}

// Service is what a driver has others call.
type Service struct {
	Store Store
	// Register adds the CSI services. Codes and Hide are those of server.Config.
	Register func(grpc.ServiceRegistrar)
	Codes    []server.Code
	Hide     func(value string) string
}

// Listen makes the servers and binds their addresses: from then on callers wait, until
// Run serves them.
func (p *Plugin) Listen(s Service) error {
	p.store = s.Store
	if err := p.listenCSI(s); err != nil {
		return err
	}
	if p.config.Options.HTTP == "" {
		return nil
	}
	var err error
	if p.http, err = telemetry.Listen(p.config.Options.HTTP, p.telemetry.Handler(), p.probe, p.ready); err != nil {
		return fmt.Errorf("--http: %w", err)
	}
	return nil
}

func (p *Plugin) listenCSI(s Service) (err error) {
	if p.socket, err = server.SocketPath(p.config.Options.Endpoint); err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	p.server, err = server.New(server.Config{
		Driver: p.config.Driver, Version: build.Version(), Codes: s.Codes, Ready: s.Store.Usable,
		Register: s.Register, Hide: s.Hide, Meter: p.Meter, Log: p.Log,
	})
	if err != nil {
		return err
	}
	p.kubelet, err = registration.New(registration.Config{
		KubeletDir: p.config.Options.KubeletDir, Driver: p.config.Driver, Log: p.Log,
	})
	if err != nil {
		return fmt.Errorf("--kubelet-dir: %w", err)
	}
	listener, err := server.Listen(p.socket)
	if err != nil {
		return fmt.Errorf("--endpoint: %w", err)
	}
	p.listener = listener
	p.warnOfOtherSocket()
	return nil
}

// warnOfOtherSocket tells of an --endpoint that is not the socket the kubelet
// will dial, under whatever path: registration would be refused for no visible
// reason. A conformance tool may well want it so.
func (p *Plugin) warnOfOtherSocket() {
	own, err := os.Lstat(p.socket)
	if err != nil {
		p.Log.Warn("the CSI socket cannot be looked at", "endpoint", p.socket, "error", err)
		return
	}
	if dialled, err := os.Lstat(p.kubelet.Endpoint()); err != nil || !os.SameFile(own, dialled) {
		p.Log.Warn("the kubelet will dial another socket than the plugin serves", "endpoint", p.socket, "kubelet-dials", p.kubelet.Endpoint())
	}
}

func (p *Plugin) probe(ctx context.Context) error { return server.Probe(ctx, p.socket) }

// ready is nil when new volumes can be made, mounts reach the kubelet and the kubelet
// knows the plugin. A standalone plugin may have no kubelet, but not one that
// refused it.
func (p *Plugin) ready(ctx context.Context) error {
	known := p.kubelet.Registered()
	if p.config.Options.Standalone {
		known = p.kubelet.Refused()
	}
	return errors.Join(p.probe(ctx), p.store.Writable(ctx), p.Mounts.RequireShared(p.config.Options.KubeletDir), known)
}

// httpAddress is the bound one: with port 0 only the log can tell which it is.
func (p *Plugin) httpAddress() string {
	if p.http == nil {
		return ""
	}
	return p.http.Address()
}
