//go:build soak

package soak

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/netns"
)

// cable is the way to a server. It can be slow, and can have its connections be reset, also
// those that are new. That nothing arrives and nobody is told is the link's to do.
type cable struct {
	address, server string
	isSlow          atomic.Bool
	isRefused       atomic.Bool

	mu    sync.Mutex
	conns map[*net.TCPConn]bool
}

// lay lays a cable along the link. It listens for as long as the test runs: a port that is
// given up may be another connection's when it is wanted again.
func lay(t *testing.T, link *netns.Link, server string) *cable {
	t.Helper()
	listener, err := net.Listen("tcp", netip.AddrPortFrom(link.Address(), 0).String())
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{server: server, address: listener.Addr().String(), conns: map[*net.TCPConn]bool{}}
	go func() {
		for {
			client, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go c.carry(client.(*net.TCPConn))
			}
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		c.refuse()
	})
	return c
}

// accept has connections be carried, again after refuse.
func (c *cable) accept() { c.isRefused.Store(false) }

// refuse resets all connections, and each that comes from now on.
func (c *cable) refuse() {
	c.isRefused.Store(true)
	c.reset()
}

// reset has both ends of every connection be told that it is over.
func (c *cable) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
}

func (c *cable) keep(conn *net.TCPConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = true
}

func (c *cable) drop(conn *net.TCPConn) {
	_ = conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, conn)
}

func (c *cable) carry(client *net.TCPConn) {
	c.keep(client)
	defer c.drop(client)
	if c.isRefused.Load() {
		_ = client.SetLinger(0)
		return
	}
	dialed, err := net.Dial("tcp", c.server)
	if err != nil {
		return
	}
	server := dialed.(*net.TCPConn)
	c.keep(server)
	defer c.drop(server)
	var ways sync.WaitGroup
	ways.Go(func() { c.copy(client, server) })
	ways.Go(func() { c.copy(server, client) })
	ways.Wait()
}

// A slow cable carries so much at a time, with a pause after it.
const (
	slowBytes = 2 << 10
	slowPause = 40 * time.Millisecond
)

func (c *cable) copy(to, from *net.TCPConn) {
	for buffer := make([]byte, 32<<10); ; {
		part := buffer
		if c.isSlow.Load() {
			time.Sleep(slowPause)
			part = buffer[:slowBytes]
		}
		n, err := from.Read(part)
		if _, failed := to.Write(part[:n]); failed != nil || err != nil {
			// The other way may have more to say, as the answer to a request that has ended.
			_ = to.CloseWrite()
			if failed != nil {
				_ = from.Close()
			}
			return
		}
	}
}
