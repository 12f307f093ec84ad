// Package server serves CSI on one unix socket: it listens, recovers, times,
// logs and translates errors for every call, answers the Identity service, and
// stops without cutting a running call off.
//
// It is the only package beside a driver's service packages that knows gRPC
// codes, and it must never know a driver: what is special about one comes in
// through Config.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"
)

// HandshakeTimeout is how long a client may take, once connected, to say that it
// speaks HTTP/2. Every client of a unix socket does so at once; gRPC's own bound
// of two minutes would hold up a stop, which waits for handshakes.
const HandshakeTimeout = 3 * time.Second

// goodbyeTimeout is how long clients may take to read the last answers and close
// their connections, after the last call is done.
const goodbyeTimeout = 2 * time.Second

// Config is what a driver brings to its server. Every field but Capabilities is
// required.
type Config struct {
	Driver  string // the CSI driver name, as in the CSIDriver object
	Version string // the build's version, for GetPluginInfo
	// Codes translates the driver's errors; first match wins. The errors of
	// csicommon and of contexts are known already.
	Codes []Code
	// Capabilities are the plugin's, for GetPluginCapabilities. A node plugin
	// has none: reporting CONTROLLER_SERVICE without serving it makes a CO call
	// what is not there.
	Capabilities []*csi.PluginCapability
	// Ready says whether the driver can serve volumes now, nil meaning yes. It
	// answers Probe, so it must be quick.
	Ready func(context.Context) error
	// Register adds the driver's CSI services.
	Register func(grpc.ServiceRegistrar)
	// Hide gives what of a value of a volume context the log may have; nil: all.
	Hide  func(value string) string
	Meter metric.Meter
	Log   *slog.Logger
}

// Server is one CSI endpoint.
type Server struct {
	grpc  *grpc.Server
	calls *calls
	log   *slog.Logger
}

// New makes a server that is not yet listening.
func New(config Config) (*Server, error) {
	observe, err := newObserver(config)
	if err != nil {
		return nil, err
	}
	running := newCalls()
	s := &Server{
		grpc: grpc.NewServer(
			grpc.ChainUnaryInterceptor(observe.intercept, running.intercept),
			grpc.ConnectionTimeout(HandshakeTimeout)),
		calls: running,
		log:   config.Log,
	}
	csi.RegisterIdentityServer(s.grpc, &identity{config: config})
	config.Register(s.grpc)
	return s, nil
}

// Serve answers calls on listener until ctx ends; then it takes no new call,
// finishes the running ones however long they take, and returns nil. It owns the
// listener and can be called once.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		s.stop()
		close(stopped)
	})
	err := s.grpc.Serve(listener)
	if !stop() {
		<-stopped
	}
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve CSI on %s: %w", listener.Addr(), err)
	}
	return nil
}

// stop waits for running calls without a bound, but for clients only for a
// moment: one that never sends the rest of its request has no call to lose.
func (s *Server) stop() {
	s.log.Info("finishing running calls")
	done := s.calls.end()
	graceful := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(graceful)
	}()
	<-done
	select {
	case <-graceful:
	case <-time.After(goodbyeTimeout):
		s.log.Warn("cutting off clients that keep their connection without a call")
		s.grpc.Stop()
		<-graceful // it also waits until the last call is in the log
	}
}
