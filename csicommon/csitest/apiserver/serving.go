package apiserver

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// serving is the listener of a started server.
type serving struct {
	server *httptest.Server
	ca     []byte
}

// Start serves over HTTPS and HTTP/2 on the loopback interface, as an API server
// does, until the test ends. It returns what a client needs; starting again
// returns the same.
func (s *Server) Start(t testing.TB) *rest.Config {
	t.Helper()
	s.mu.Lock()
	on := s.serving
	s.mu.Unlock()
	if on == nil {
		server := httptest.NewUnstartedServer(s)
		server.EnableHTTP2 = true
		// As few as kube-apiserver allows by default: 100 watches fill a connection.
		server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100}
		server.StartTLS()
		on = &serving{
			server: server,
			ca:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		}
		s.mu.Lock()
		s.serving = on
		s.mu.Unlock()
		t.Cleanup(func() {
			// Watches of a client that is still there would hold Close up.
			server.CloseClientConnections()
			s.DropWatches()
			server.Close()
		})
	}
	return &rest.Config{Host: on.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: on.ca}}
}

// Kubeconfig starts the server and writes a kubeconfig file for it, which is
// removed with the test. A child process reaches the server with it.
func (s *Server) Kubeconfig(t testing.TB) string {
	t.Helper()
	config := s.Start(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"fake": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"driver": {}},
		Contexts:       map[string]*clientcmdapi.Context{"fake": {Cluster: "fake", AuthInfo: "driver"}},
		CurrentContext: "fake",
	}, file)
	if err != nil {
		t.Fatalf("write %s: %v", file, err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// InProcess returns the configuration of a client that calls s without a
// network, for tests in a synctest bubble; s must be made in the same bubble.
func (s *Server) InProcess() *rest.Config {
	return &rest.Config{Host: "http://apiserver.example.invalid", Transport: s}
}
