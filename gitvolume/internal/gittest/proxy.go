package gittest

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync"
	"testing"
	"time"
)

// Proxy is a forward proxy for HTTP and, by CONNECT, for HTTPS, which ends with the test.
type Proxy struct {
	// URL is what HTTPS_PROXY holds.
	URL    string
	refuse bool

	mu   sync.Mutex
	seen []string
}

// StartProxy starts a proxy that connects to whatever it is asked for.
func StartProxy(t testing.TB) *Proxy {
	t.Helper()
	return startProxy(t, &Proxy{})
}

// StartRefusingProxy starts a proxy that connects to nothing.
func StartRefusingProxy(t testing.TB) *Proxy {
	t.Helper()
	return startProxy(t, &Proxy{refuse: true})
}

func startProxy(t testing.TB, p *Proxy) *Proxy {
	t.Helper()
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL = r.In.URL }}
	var tunnels sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, r.Method+" "+r.Host)
		p.mu.Unlock()
		switch {
		case p.refuse:
			http.Error(w, "not by this proxy", http.StatusForbidden)
		case r.Method == http.MethodConnect:
			tunnel(w, r, &tunnels)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		tunnels.Wait()
	})
	p.URL = server.URL
	return p
}

// Seen are the requests so far: method and host.
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.seen...)
}

func tunnel(w http.ResponseWriter, r *http.Request, tunnels *sync.WaitGroup) {
	server, err := net.DialTimeout("tcp", r.Host, 10*time.Second)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = server.Close()
		return
	}
	_, _ = io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n")
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		tunnels.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
}
