package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"liken.sh/csicommon/csitest/logtest"
	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/server"
	"liken.sh/csicommon/telemetry"
)

var errHeld = errors.New("held")

// node is a driver whose one call does what the test says.
type node struct {
	csi.UnimplementedNodeServer
	publish func(context.Context) error
}

func (n *node) NodePublishVolume(ctx context.Context, _ *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	return &csi.NodePublishVolumeResponse{}, n.publish(ctx)
}

func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

type fixture struct {
	socket  string
	client  csi.NodeClient
	conn    *grpc.ClientConn
	log     *logtest.Log
	metrics *telemetry.Telemetry
	stop    context.CancelFunc
	served  chan error
}

func start(t *testing.T, n *node, ready func(context.Context) error) *fixture {
	t.Helper()
	return startAt(t, filepath.Join(t.TempDir(), "csi.sock"), n, ready)
}

func startAt(t *testing.T, socket string, n *node, ready func(context.Context) error) *fixture {
	t.Helper()
	f := &fixture{socket: socket, log: &logtest.Log{}, served: make(chan error, 1)}
	log := f.log.Logger()
	var err error
	if f.metrics, err = telemetry.New(t.Context(), telemetry.Config{Service: "test.liken.sh", Log: log}); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Config{
		Driver: "test.liken.sh", Version: "v1", Ready: ready, Log: log, Meter: f.metrics.Meter(),
		Codes:    []server.Code{{Err: errHeld, Code: codes.FailedPrecondition}},
		Hide:     func(value string) string { return strings.ReplaceAll(value, "me:hunter3", "hidden") },
		Register: func(r grpc.ServiceRegistrar) { csi.RegisterNodeServer(r, n) },
	})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := server.Listen(f.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	f.stop = stop
	go func() { f.served <- s.Serve(ctx, listener) }()
	t.Cleanup(stop)
	dial := func(context.Context, string) (net.Conn, error) { return net.Dial("unix", f.socket) }
	f.conn, err = grpc.NewClient("passthrough:///csi", grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.conn.Close() })
	f.client = csi.NewNodeClient(f.conn)
	return f
}

func healthy(context.Context) error { return nil }

func TestErrorsBecomeCodes(t *testing.T) {
	n := &node{}
	f := start(t, n, healthy)
	for _, row := range []struct {
		name string
		err  error
		code codes.Code
	}{
		{"driver's own", fmt.Errorf("publish: %w", errHeld), codes.FailedPrecondition},
		{"bad handle", handle.Check("A"), codes.InvalidArgument},
		{"argument", fmt.Errorf("no target: %w", server.ErrArgument), codes.InvalidArgument},
		{"lock not had in time", fmt.Errorf("%w (%w)", keyedmutex.ErrBusy, context.DeadlineExceeded), codes.Aborted},
		{"out of time", fmt.Errorf("bind: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		{"caller left", context.Canceled, codes.Canceled},
		{"a status stays", status.Error(codes.NotFound, "gone"), codes.NotFound},
		{"unknown", errors.New("disk on fire"), codes.Internal},
	} {
		n.publish = func(context.Context) error { return row.err }
		_, err := f.client.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{})
		if got := status.Code(err); got != row.code {
			t.Errorf("%s: code %s, want %s", row.name, got, row.code)
		}
	}
}

func TestAPanicIsInternalAndInTheLog(t *testing.T) {
	n := &node{publish: func(context.Context) error { panic("boom at 7") }}
	f := start(t, n, healthy)
	_, err := f.client.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{})
	if status.Code(err) != codes.Internal {
		t.Errorf("code %s, want Internal", status.Code(err))
	}
	if log := f.log.String(); !strings.Contains(log, "boom at 7") || !strings.Contains(log, "server_test.go") {
		t.Errorf("no panic with its stack in the log:\n%s", log)
	}
	n.publish = func(context.Context) error { return nil }
	if _, err := f.client.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{}); err != nil {
		t.Errorf("the call after the panic: %v", err)
	}
}

func TestACallIsLoggedOnceWithoutSecrets(t *testing.T) {
	f := start(t, &node{publish: func(context.Context) error { return nil }}, healthy)
	_, err := f.client.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: "vol-1", Secrets: map[string]string{"token": "hunter2"},
		VolumeContext: map[string]string{"url": "https://me:hunter3@example.com"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.client.NodeGetCapabilities(t.Context(), &csi.NodeGetCapabilitiesRequest{}); err != nil {
		t.Fatal(err)
	}
	log := f.log.String()
	if strings.Contains(log, "hunter") || !strings.Contains(log, "https://hidden@example.com") {
		t.Errorf("a secret is in the log:\n%s", log)
	}
	if n := strings.Count(log, "NodePublishVolume"); n != 1 || !strings.Contains(log, "vol-1") || !strings.Contains(log, "code=OK") {
		t.Errorf("want one line with the volume and the code:\n%s", log)
	}
	if strings.Contains(log, "NodeGetCapabilities") {
		t.Error("a capability call is logged at info")
	}
}

func TestStopFinishesRunningCalls(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	f := start(t, &node{publish: func(context.Context) error { close(entered); <-release; return nil }}, healthy)
	answered := make(chan error, 1)
	go func() {
		_, err := f.client.NodePublishVolume(context.WithoutCancel(t.Context()), &csi.NodePublishVolumeRequest{})
		answered <- err
	}()
	<-entered
	f.stop()
	select {
	case err := <-f.served:
		t.Fatalf("the server stopped under a running call: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the running call: %v", err)
	}
	if err := <-f.served; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
}

func TestProbeSaysWhyNot(t *testing.T) {
	var broken error
	f := start(t, &node{}, func(context.Context) error { return broken })
	if err := server.Probe(t.Context(), f.socket); err != nil {
		t.Errorf("Probe of a healthy plugin: %v", err)
	}
	broken = errors.New("store is read-only")
	if err := server.Probe(t.Context(), f.socket); err == nil || !strings.Contains(err.Error(), "store is read-only") {
		t.Errorf("Probe = %v, want it to say why", err)
	}
	_, err := csi.NewIdentityClient(f.conn).Probe(t.Context(), &csi.ProbeRequest{})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("code %s, want FailedPrecondition", status.Code(err))
	}
	broken = nil
	if err := os.Remove(f.socket); err != nil {
		t.Fatal(err)
	}
	if err := server.Probe(t.Context(), f.socket); err == nil {
		t.Error("Probe succeeded through a socket that is gone")
	}
}

func TestListen(t *testing.T) {
	t.Run("a socket left by a killed process is replaced", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "csi.sock")
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		_ = dead.Close()
		listener, err := server.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		_ = listener.Close()
	})
	t.Run("nobody else may connect", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "csi.sock")
		listener, err := server.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket is %v, %v, want mode 600", info, err)
		}
	})
	t.Run("a live one is an error and keeps serving", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "csi.sock")
		live, err := server.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		defer live.Close()
		if _, err := server.Listen(path); !errors.Is(err, server.ErrSocket) || !strings.Contains(err.Error(), "another process") {
			t.Errorf("Listen = %v", err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error("the live socket was removed")
		}
	})
	t.Run("a file that is no socket is left alone", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "csi.sock")
		if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Listen(path); !errors.Is(err, server.ErrSocket) {
			t.Errorf("Listen = %v", err)
		}
		if data, _ := os.ReadFile(path); string(data) != "mine" {
			t.Error("the file was replaced")
		}
	})
}

func TestSocketPath(t *testing.T) {
	for _, row := range []struct{ endpoint, path string }{
		{"unix:///csi/csi.sock", "/csi/csi.sock"},
		{"unix:/csi/csi.sock", "/csi/csi.sock"},
		{"/csi/csi.sock", "/csi/csi.sock"},
		{"unix:///" + strings.Repeat("a", 106), "/" + strings.Repeat("a", 106)},
		{"unix:///" + strings.Repeat("a", 107), ""},
		{"tcp://127.0.0.1:9000", ""},
		{"unix://csi.sock", ""},
		{"", ""},
	} {
		path, err := server.SocketPath(row.endpoint)
		if row.path == "" {
			if !errors.Is(err, server.ErrSocket) {
				t.Errorf("SocketPath(%q) = %q, %v; want an error", row.endpoint, path, err)
			}
		} else if err != nil || path != row.path {
			t.Errorf("SocketPath(%q) = %q, %v; want %q", row.endpoint, path, err, row.path)
		}
	}
}
