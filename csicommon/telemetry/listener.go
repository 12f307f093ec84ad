package telemetry

import (
	"context"
	"io"
	"net/http"
	"time"

	"liken.sh/csicommon/httplistener"
)

// Bounds of a check, and of the last push of metrics.
const (
	checkTimeout    = 5 * time.Second
	shutdownTimeout = 2 * time.Second
)

// bounds are for a kubelet and a scraper: whoever else connects must not cost the plugin
// memory. An answer may take longer than a check or a scrape does, or those would be cut
// off unanswered.
func bounds() httplistener.Bounds {
	return httplistener.Bounds{
		Connections: 64, HeaderBytes: 8 << 10,
		ReadHeader: 5 * time.Second, Read: 10 * time.Second, Write: scrapeTimeout + 10*time.Second, Idle: 30 * time.Second,
		Shutdown: shutdownTimeout,
	}
}

// Check returns nil when what it looks at is well.
type Check func(context.Context) error

// Listen serves /metrics, /healthz and /readyz on address ("host:port"). The error of one
// that cannot be used wraps httplistener.ErrListen.
func Listen(address string, metrics http.Handler, healthz, readyz Check) (*httplistener.Listener, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET /healthz", healthz)
	mux.Handle("GET /readyz", readyz)
	return httplistener.Listen(address, mux, bounds())
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
