package registration_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"

	"liken.sh/csicommon/csitest/kubelet"
	"liken.sh/csicommon/registration"
	"liken.sh/csicommon/server"
)

const driver = "test.liken.sh"

// node is the least a kubelet asks of a plugin when it registers.
type node struct {
	csi.UnimplementedNodeServer
	err error
}

func (n *node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "n1"}, n.err
}

func (n *node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func start(t *testing.T, n *node) (root string, r *registration.Registration, stop func()) {
	t.Helper()
	root = t.TempDir()
	listener, err := server.Listen(filepath.Join(root, "plugins", driver, "csi.sock"))
	if err != nil {
		t.Fatal(err)
	}
	plugin := grpc.NewServer()
	csi.RegisterNodeServer(plugin, n)
	go func() { _ = plugin.Serve(listener) }()
	t.Cleanup(plugin.Stop)
	r, err = registration.New(registration.Config{KubeletDir: root, Driver: driver, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	return root, r, stop
}

func socketOf(root string) string {
	return filepath.Join(root, "plugins_registry", driver+"-reg.sock")
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestTheKubeletRegistersThePlugin(t *testing.T) {
	root, r, stop := start(t, &node{})
	if err := r.Registered(); err == nil {
		t.Error("registered before the kubelet said so")
	}
	if err := r.Refused(); err != nil {
		t.Errorf("Refused = %v before the kubelet asked", err)
	}
	k, err := kubelet.Register(within(t), root, driver)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := r.Registered(); err != nil {
		t.Errorf("Registered = %v", err)
	}
	stop()
	if _, err := os.Lstat(socketOf(root)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there after the stop: %v", err)
	}
}

func TestARefusalIsKept(t *testing.T) {
	root, r, _ := start(t, &node{err: errors.New("no node id")})
	if _, err := kubelet.Register(within(t), root, driver); err == nil {
		t.Fatal("a plugin whose NodeGetInfo fails was registered")
	}
	if err := r.Refused(); err == nil || !strings.Contains(err.Error(), "no node id") {
		t.Errorf("Refused = %v, want the kubelet's words", err)
	}
}

func TestTheSocketIsMadeAgain(t *testing.T) {
	root, r, _ := start(t, &node{})
	k, err := kubelet.Register(within(t), root, driver)
	if err != nil {
		t.Fatal(err)
	}
	_ = k.Close()
	if err := os.RemoveAll(filepath.Join(root, "plugins_registry")); err != nil {
		t.Fatal(err)
	}
	again, err := kubelet.Register(within(t), root, driver)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := r.Registered(); err != nil {
		t.Errorf("Registered = %v", err)
	}
}

func TestLongPathsAreRefusedAtStart(t *testing.T) {
	_, err := registration.New(registration.Config{KubeletDir: "/" + strings.Repeat("k", 90), Driver: driver})
	if !errors.Is(err, server.ErrSocket) {
		t.Errorf("New = %v, want ErrSocket", err)
	}
}
