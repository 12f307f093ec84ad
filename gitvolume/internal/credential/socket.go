package credential

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// maxSocketPath is what sun_path holds, with the NUL at its end.
const maxSocketPath = 107

// acceptPause keeps a lack of descriptors from becoming a busy loop.
const acceptPause = 10 * time.Millisecond

// socket serves connections to a unix socket until it is closed.
type socket struct {
	listener *net.UnixListener
	serve    func(net.Conn)

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
	served sync.WaitGroup
}

func listen(path string, serve func(net.Conn)) (*socket, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the path of a socket, %s, has more than %d bytes", path, maxSocketPath)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on a socket for git's children: %w", err)
	}
	s := &socket{listener: listener, serve: serve, conns: map[net.Conn]struct{}{}}
	s.served.Go(s.accept)
	return s, nil
}

func (s *socket) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause) // descriptors are short for now
			continue
		}
		if !s.enter(conn) {
			continue
		}
		s.served.Go(func() {
			defer s.leave(conn)
			if sameUser(conn) {
				s.serve(conn)
			}
		})
	}
}

// enter takes a connection in, unless the socket is closed.
func (s *socket) enter(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *socket) leave(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = conn.Close()
	delete(s.conns, conn)
}

// Close removes the socket, ends its connections and waits until nobody is served.
func (s *socket) Close() {
	s.mu.Lock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	_ = s.listener.Close()
	s.served.Wait()
}

// sameUser tells whether the peer runs as this process's user. The directory keeps
// others out already; this holds when somebody widens it.
func sameUser(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	if err := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return false
	}
	return err == nil && int(peer.Uid) == os.Geteuid()
}
