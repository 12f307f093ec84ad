// Package registration tells the kubelet about a node plugin, without a sidecar:
// it serves the kubelet's plugin registration API on a socket in
// plugins_registry and makes that socket again whenever it disappears.
//
// It must never be started before CSI is served: the kubelet dials the endpoint
// the moment it sees the socket.
package registration

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"liken.sh/csicommon/server"
)

// watchEvery is how often the socket is looked for. A look is one lstat; what
// removes the socket (a cleaned directory, a node tool) does so rarely.
const watchEvery = time.Second

// errNotAsked is the state before the kubelet's first answer.
var errNotAsked = errors.New("the kubelet has not registered the plugin yet")

// Config names the plugin and where the kubelet looks for it.
type Config struct {
	KubeletDir string // the kubelet's root directory, as on the host
	Driver     string
	Log        *slog.Logger
}

// Registration is one plugin's registration with one kubelet.
type Registration struct {
	api.UnimplementedRegistrationServer
	config Config
	socket string
	// endpoint is the host path the kubelet dials; the plugin may serve the same
	// socket under another path inside its container.
	endpoint string

	mu    sync.Mutex
	state error // nil once the kubelet said that it registered the plugin
}

// New checks that both sockets' paths can exist; its errors wrap
// server.ErrSocket.
func New(config Config) (*Registration, error) {
	r := &Registration{
		config:   config,
		socket:   filepath.Join(config.KubeletDir, "plugins_registry", config.Driver+"-reg.sock"),
		endpoint: filepath.Join(config.KubeletDir, "plugins", config.Driver, "csi.sock"),
		state:    errNotAsked,
	}
	for _, path := range []string{r.socket, r.endpoint} {
		if err := server.CheckSocketPath(path); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Endpoint is the path at which the kubelet will dial the plugin.
func (r *Registration) Endpoint() string { return r.endpoint }

// Registered returns nil when the kubelet has taken the plugin, and otherwise
// what it said.
func (r *Registration) Registered() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state
}

// Refused is like Registered, but a kubelet that has not asked yet is no error.
func (r *Registration) Refused() error {
	if err := r.Registered(); !errors.Is(err, errNotAsked) {
		return err
	}
	return nil
}

// Run serves registration until ctx ends and then removes the socket, so that
// the kubelet forgets the plugin. It fails only if the socket cannot be made the
// first time; later it keeps trying, since pods are using the plugin by then.
func (r *Registration) Run(ctx context.Context) error {
	listener, err := server.Listen(r.socket)
	if err != nil {
		return fmt.Errorf("offer registration to the kubelet: %w", err)
	}
	for {
		if err := r.serve(ctx, listener); err != nil {
			r.config.Log.Error("serving registration failed", "socket", r.socket, "error", err)
		}
		if listener = r.listenAgain(ctx); listener == nil {
			return nil
		}
	}
}

// listenAgain tries once each watchEvery, nil when ctx ends first.
func (r *Registration) listenAgain(ctx context.Context) *net.UnixListener {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	reported := ""
	for ctx.Err() == nil {
		listener, err := server.Listen(r.socket)
		if err == nil {
			return listener
		}
		r.setState(fmt.Errorf("offer registration to the kubelet: %w", err))
		if reported != err.Error() {
			reported = err.Error()
			r.config.Log.Error("the registration socket cannot be made", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return nil
}

// serve answers on one socket until its file is no longer there or ctx ends.
func (r *Registration) serve(ctx context.Context, listener *net.UnixListener) error {
	// Closing must not unlink: by then the path may be a successor's socket.
	listener.SetUnlinkOnClose(false)
	own, err := os.Lstat(r.socket)
	if err != nil {
		return errors.Join(fmt.Errorf("look at registration socket %q: %w", r.socket, err), listener.Close())
	}
	r.setState(errNotAsked)
	r.config.Log.Info("offering registration to the kubelet", "socket", r.socket, "kubelet-dials", r.endpoint)
	// Waiting for handlers keeps a late verdict from overwriting a later state.
	grpcServer := grpc.NewServer(grpc.ConnectionTimeout(server.HandshakeTimeout), grpc.WaitForHandlers(true))
	api.RegisterRegistrationServer(grpcServer, r)
	served := make(chan error, 1)
	go func() { served <- grpcServer.Serve(listener) }()
	r.waitWhileThere(ctx, own)
	// Before the listener is closed: only while it is open is its inode's number
	// no other file's.
	if now, statErr := os.Lstat(r.socket); statErr == nil && os.SameFile(own, now) {
		err = os.Remove(r.socket)
	}
	grpcServer.Stop()
	return errors.Join(err, <-served)
}

func (r *Registration) setState(state error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
}

// waitWhileThere returns when ctx has ended or the kubelet can no longer reach
// this socket by its path. What to do about something that stands in its place is
// Listen's to say: a stale socket is replaced, anything else is an error until it
// is gone.
func (r *Registration) waitWhileThere(ctx context.Context, own fs.FileInfo) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now, err := os.Lstat(r.socket)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			r.config.Log.Warn("the registration socket disappeared, making it again", "socket", r.socket)
			return
		case err != nil:
			r.config.Log.Warn("the registration socket cannot be looked at, making it again", "socket", r.socket, "error", err)
			return
		case !os.SameFile(own, now):
			r.config.Log.Warn("something else took the registration socket's place, making it again", "socket", r.socket)
			return
		}
	}
}

// GetInfo describes the plugin as the kubelet's plugin watcher wants it; 1.0.0
// is the range of CSI versions, not the driver's.
func (r *Registration) GetInfo(context.Context, *api.InfoRequest) (*api.PluginInfo, error) {
	return &api.PluginInfo{
		Type:              api.CSIPlugin,
		Name:              r.config.Driver,
		Endpoint:          r.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus takes the kubelet's verdict. A refusal does not end
// the process: the kubelet tries again, and running pods still need unpublish.
func (r *Registration) NotifyRegistrationStatus(_ context.Context, verdict *api.RegistrationStatus) (*api.RegistrationStatusResponse, error) {
	var state error
	if verdict.GetPluginRegistered() {
		r.config.Log.Info("the kubelet registered the plugin")
	} else {
		state = fmt.Errorf("the kubelet refused the plugin: %s", verdict.GetError())
		r.config.Log.Error("the kubelet refused the plugin", "error", verdict.GetError())
	}
	r.setState(state)
	return &api.RegistrationStatusResponse{}, nil
}
