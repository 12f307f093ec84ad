package gittest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// HTTPOptions say how an HTTP server is to be. The zero value serves anybody without TLS
// on 127.0.0.1.
type HTTPOptions struct {
	// Address is where it listens: an address of 127.0.0.0/8.
	Address string
	// User and Password have to be given when Password is not empty.
	User, Password string
	// CA, if not nil, makes it an HTTPS server with a certificate of this authority.
	CA *CA
	// Around wraps the handler that serves git, to answer in its place or to change what
	// it answers; nil leaves it alone.
	Around func(git http.Handler) http.Handler
}

// HTTP is a running server of git's smart HTTP protocol, by git-http-backend, which ends
// with the test.
type HTTP struct {
	server *httptest.Server

	mu       sync.Mutex
	requests []*http.Request
}

// StartHTTP starts a server that serves every repository below root.
func StartHTTP(t testing.TB, root string, options HTTPOptions) *HTTP {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "gitconfig")
	write(t, config, "")
	var handler http.Handler = &cgi.Handler{
		Path: git,
		Args: []string{"http-backend"},
		Dir:  root,
		Env: append(Environment(config),
			"GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER="+options.User),
		Stderr: io.Discard,
	}
	if options.Around != nil {
		handler = options.Around(handler)
	}
	h := &HTTP{}
	h.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, r.Clone(r.Context()))
		h.mu.Unlock()
		user, password, _ := r.BasicAuth()
		if options.Password != "" && (user != options.User || password != options.Password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	h.start(t, options)
	return h
}

func (h *HTTP) start(t testing.TB, options HTTPOptions) {
	t.Helper()
	address := options.Address
	if address == "" {
		address = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	_ = h.server.Listener.Close()
	h.server.Listener = listener
	if options.CA != nil {
		h.server.TLS = &tls.Config{Certificates: []tls.Certificate{options.CA.certificate(t, address)}}
		h.server.StartTLS()
	} else {
		h.server.Start()
	}
	t.Cleanup(func() {
		h.server.CloseClientConnections()
		h.server.Close()
	})
}

// URL is the repository at the path below the server's root.
func (h *HTTP) URL(path string) string { return h.server.URL + path }

// Requests are those it got so far. Their bodies are gone.
func (h *HTTP) Requests() []*http.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*http.Request(nil), h.requests...)
}

// Whole is an Around that has CGI be given a request whose length is known, as it takes no
// other: git sends a large push in pieces.
func Whole(git http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		git.ServeHTTP(w, r)
	})
}

// CA is a certificate authority that no machine trusts.
type CA struct {
	// PEM is its certificate.
	PEM string
	// File holds PEM.
	File string
	own  *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes an authority for the test.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{own: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	var err error
	if ca.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, ca.own, ca.own, ca.key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	ca.PEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	ca.File = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca.File, []byte(ca.PEM), 0o600); err != nil {
		t.Fatal(err)
	}
	return ca
}

func (ca *CA) certificate(t testing.TB, address string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: address},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(address)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca.own, key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
