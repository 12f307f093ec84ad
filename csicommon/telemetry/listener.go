package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Bounds of the HTTP listener: it is meant for a kubelet and a scraper, and
// whoever else connects must not cost the plugin memory. An answer may take
// longer than a check or a scrape does, or those would be cut off unanswered.
const (
	maxConnections    = 64
	maxHeaderBytes    = 8 << 10
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	checkTimeout      = 5 * time.Second
	writeTimeout      = scrapeTimeout + 10*time.Second
	idleTimeout       = 30 * time.Second
	shutdownTimeout   = 2 * time.Second
)

// ErrListen is wrapped when the listener's address cannot be used.
var ErrListen = errors.New("HTTP address cannot be used")

// Check returns nil when what it looks at is well.
type Check func(context.Context) error

// Listener serves /metrics, /healthz and /readyz.
type Listener struct {
	listener net.Listener
	server   *http.Server
}

// Listen binds address ("host:port"), so that a taken port stops the start.
func Listen(address string, metrics http.Handler, healthz, readyz Check) (*Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w: %w", address, ErrListen, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET /healthz", healthz)
	mux.Handle("GET /readyz", readyz)
	return &Listener{listener: listener, server: newServer(mux)}, nil
}

func newServer(handler http.Handler) *http.Server {
	open := &connections{limit: maxConnections}
	return &http.Server{
		Handler:           handler,
		ConnState:         open.track,
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
	}
}

// Address is the one bound, with the port the kernel chose for port 0.
func (l *Listener) Address() string { return l.listener.Addr().String() }

// Serve answers until ctx ends.
func (l *Listener) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := l.server.Shutdown(ending); err != nil {
			_ = l.server.Close() // whoever is still connected is cut off
		}
	})
	defer stop()
	if err := l.server.Serve(l.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP on %s: %w", l.Address(), err)
	}
	return nil
}

// ServeHTTP answers 200 "ok", or 503 with the error's words.
func (c Check) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), checkTimeout)
	defer cancel()
	if err := c(ctx); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // a client that left has no use for an error
}
