package registration_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
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

// stale leaves a socket that a killed process would.
func stale(t *testing.T, path string) {
	t.Helper()
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	_ = dead.Close()
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for: %s", what)
		}
	}
}

// replace puts what make makes in the socket's place in one step, as a rename
// does, so that the socket is never seen missing.
func replace(t *testing.T, socket string, make func(path string)) {
	t.Helper()
	aside := filepath.Join(filepath.Dir(socket), "aside")
	make(aside)
	if err := unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, socket, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(aside); err != nil { // the plugin's own socket
		t.Fatal(err)
	}
}

func TestAStaleSocketInItsPlaceIsReplaced(t *testing.T) {
	t.Parallel()
	root, r, _ := start(t, &node{})
	first, err := kubelet.Register(within(t), root, driver)
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	replace(t, socketOf(root), func(path string) { stale(t, path) })
	waitFor(t, "the plugin to answer at its path", func() bool {
		conn, err := net.Dial("unix", socketOf(root))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	again, err := kubelet.Register(within(t), root, driver)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := r.Registered(); err != nil {
		t.Errorf("Registered = %v", err)
	}
}

// What is not the plugin's to remove makes it unready, by name, until it is gone.
func TestAnotherInItsPlace(t *testing.T) {
	for _, row := range []struct {
		name string
		make func(t *testing.T, path string)
		says string
	}{
		{"file", func(t *testing.T, path string) {
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is not a socket"},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is not a socket"},
		{"symlink", func(t *testing.T, path string) {
			if err := os.Symlink("nowhere", path); err != nil {
				t.Fatal(err)
			}
		}, "is not a socket"},
		{"live socket", func(t *testing.T, path string) {
			live, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			live.(*net.UnixListener).SetUnlinkOnClose(false)
			t.Cleanup(func() { _ = live.Close() })
		}, "another process is serving"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			root, r, _ := start(t, &node{})
			first, err := kubelet.Register(within(t), root, driver)
			if err != nil {
				t.Fatal(err)
			}
			_ = first.Close()
			replace(t, socketOf(root), func(path string) { row.make(t, path) })
			waitFor(t, "an error", func() bool { return r.Refused() != nil })
			if err := r.Registered(); !strings.Contains(err.Error(), row.says) || !strings.Contains(err.Error(), socketOf(root)) {
				t.Errorf("Registered = %v, want it to say that %q %s", err, socketOf(root), row.says)
			}
			if err := os.Remove(socketOf(root)); err != nil {
				t.Fatal(err) // the plugin must not have removed it
			}
			again, err := kubelet.Register(within(t), root, driver)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if err := r.Registered(); err != nil {
				t.Errorf("Registered = %v after the way was free", err)
			}
		})
	}
}

func TestStopDoesNotWaitForASilentClient(t *testing.T) {
	t.Parallel()
	root, _, stop := start(t, &node{})
	first, err := kubelet.Register(within(t), root, driver) // the socket is there
	if err != nil {
		t.Fatal(err)
	}
	_ = first.Close()
	silent, err := net.Dial("unix", socketOf(root))
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	second, err := kubelet.Register(within(t), root, driver) // and the client before it is accepted
	if err != nil {
		t.Fatal(err)
	}
	_ = second.Close()
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Error("a client that only connected holds up the stop")
	}
	if _, err := os.Lstat(socketOf(root)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there after the stop: %v", err)
	}
}

func TestLongPathsAreRefusedAtStart(t *testing.T) {
	_, err := registration.New(registration.Config{KubeletDir: "/" + strings.Repeat("k", 90), Driver: driver})
	if !errors.Is(err, server.ErrSocket) {
		t.Errorf("New = %v, want ErrSocket", err)
	}
}
