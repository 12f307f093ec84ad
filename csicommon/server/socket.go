package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// MaxSocketPath is the longest path of a unix socket in bytes: sun_path has 108
// with its final NUL. A longer one would be cut or refused only by whoever dials
// it, which is the kubelet, long after the start.
const MaxSocketPath = 107

// dialTimeout bounds the question whether somebody serves a socket already.
const dialTimeout = time.Second

// ErrSocket is wrapped by every error that says a socket path cannot be used.
var ErrSocket = errors.New("socket cannot be used")

// SocketPath returns the path of an endpoint given as "unix:///path" (or
// "unix:/path", or a bare absolute path).
func SocketPath(endpoint string) (string, error) {
	path := endpoint
	if rest, found := strings.CutPrefix(path, "unix:"); found {
		path = strings.TrimPrefix(rest, "//")
	}
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("endpoint %q is not a unix socket with an absolute path such as unix:///csi/csi.sock: %w", endpoint, ErrSocket)
	}
	return path, CheckSocketPath(path)
}

// CheckSocketPath refuses a path that the kernel cannot bind.
func CheckSocketPath(path string) error {
	if len(path) > MaxSocketPath {
		return fmt.Errorf("socket path %q has %d bytes, the kernel takes at most %d: %w", path, len(path), MaxSocketPath, ErrSocket)
	}
	return nil
}

// Listen binds the unix socket at path, making its directory if that is missing.
// A socket file that nobody serves (its process was killed) is replaced; one
// that answers, or a file that is no socket, is an error.
func Listen(path string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("make the directory of socket %q: %w: %w", path, ErrSocket, err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w: %w", path, ErrSocket, err)
	}
	// Only root and the kubelet, which is root, may talk to a node plugin.
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("restrict socket %q: %w: %w", path, ErrSocket, err), listener.Close())
	}
	return listener, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at socket %q: %w: %w", path, ErrSocket, err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%q exists and is not a socket, remove it or choose another path: %w", path, ErrSocket)
	}
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	if err == nil {
		return errors.Join(fmt.Errorf("another process is serving %q, stop it or choose another path: %w", path, ErrSocket), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("ask who serves %q: %w: %w", path, ErrSocket, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove stale socket %q: %w: %w", path, ErrSocket, err)
	}
	return nil
}
