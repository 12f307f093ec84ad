package gittest

import (
	"net"
	"sync"
	"testing"
)

// Listener is a TCP server that does with each connection what the test wants, and ends
// with the test.
type Listener struct {
	// Address is its host and port.
	Address string

	mu       sync.Mutex
	accepted int
}

// Listen starts a server on 127.0.0.1. handle has the connection, which is closed when
// the function returns and, if that is earlier, when the test ends.
func Listen(t testing.TB, handle func(net.Conn)) *Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Listener{Address: listener.Addr().String()}
	conns := map[net.Conn]bool{}
	ended := false
	var workers sync.WaitGroup
	workers.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.mu.Lock()
			l.accepted++
			conns[conn] = true
			if ended {
				_ = conn.Close()
			}
			l.mu.Unlock()
			workers.Go(func() {
				defer conn.Close()
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.mu.Lock()
		ended = true
		for conn := range conns {
			_ = conn.Close()
		}
		l.mu.Unlock()
		workers.Wait()
	})
	return l
}

// Accepted is how many connections there were.
func (l *Listener) Accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted
}

// Silent is a server that takes connections and never says anything.
func Silent(t testing.TB) *Listener {
	t.Helper()
	return Listen(t, func(conn net.Conn) {
		buffer := make([]byte, 4<<10)
		for {
			if _, err := conn.Read(buffer); err != nil {
				return
			}
		}
	})
}

// Full is the address of a port on 127.0.0.1 whose queue of connections is full: a
// connection to it is neither made nor refused.
func Full(t testing.TB) string {
	t.Helper()
	return fullQueue(t)
}

// Closed is the address of a port on 127.0.0.1 where nobody listens.
func Closed(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
