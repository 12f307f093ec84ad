// Package httplistener serves HTTP to whoever can reach an address, at a bounded cost: so
// many connections, so large headers, and an end to every wait.
//
// It must never let a client that says nothing, or too slowly, keep another from being
// served, and never hold up the end of its process.
package httplistener

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ErrListen is wrapped when the address cannot be used.
var ErrListen = errors.New("HTTP address cannot be used")

// Bounds are what clients may cost. All have to be set.
type Bounds struct {
	// Connections is how many there may be; above it one that idles is closed, or the
	// oldest.
	Connections int
	HeaderBytes int
	// ReadHeader and Read are how long a request may take to arrive, its header and the
	// whole; Write how long after the header an answer may take to be read, Idle how long
	// a connection stays open that asks nothing.
	ReadHeader, Read, Write, Idle time.Duration
	// Shutdown is how long the requests that run may take to be answered at the end.
	Shutdown time.Duration
}

// Listener is a bound address.
type Listener struct {
	listener net.Listener
	server   *http.Server
	shutdown time.Duration
}

// Listen binds address ("host:port"), so that a taken port stops the start.
func Listen(address string, handler http.Handler, bounds Bounds) (*Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w: %w", address, ErrListen, err)
	}
	return &Listener{listener: listener, server: newServer(handler, bounds), shutdown: bounds.Shutdown}, nil
}

func newServer(handler http.Handler, bounds Bounds) *http.Server {
	open := &connections{limit: bounds.Connections}
	return &http.Server{
		Handler:           handler,
		ConnState:         open.track,
		MaxHeaderBytes:    bounds.HeaderBytes,
		ReadHeaderTimeout: bounds.ReadHeader,
		ReadTimeout:       bounds.Read,
		WriteTimeout:      bounds.Write,
		IdleTimeout:       bounds.Idle,
	}
}

// Address is the one bound, with the port the kernel chose for port 0.
func (l *Listener) Address() string { return l.listener.Addr().String() }

// Serve answers until ctx ends.
func (l *Listener) Serve(ctx context.Context) error {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.shutdown)
		defer cancel()
		if err := l.server.Shutdown(ending); err != nil {
			_ = l.server.Close() // whoever is still connected is cut off
		}
	})
	err := l.server.Serve(l.listener)
	if !stop() {
		<-ended // the requests that run have their answers
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", l.Address(), err)
	}
	return nil
}

// Close gives up an address that Serve was not called for.
func (l *Listener) Close() error { return l.listener.Close() }
