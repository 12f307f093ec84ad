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

// cable is the way to a server. It can be slow, and can have its connections be reset and
// new ones be refused. That nothing arrives and nobody is told is the link's to do.
type cable struct {
	address, server string
	isSlow          atomic.Bool

	mu       sync.Mutex
	listener net.Listener // nil: connections are refused.
	conns    map[*net.TCPConn]bool
}

// lay lays a cable along the link.
func lay(t *testing.T, link *netns.Link, server string) *cable {
	t.Helper()
	c := &cable{server: server, address: netip.AddrPortFrom(link.Address(), 0).String(), conns: map[*net.TCPConn]bool{}}
	if err := c.accept(); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	c.address = c.listener.Addr().String() // Also of later listeners.
	c.mu.Unlock()
	t.Cleanup(c.refuse)
	return c
}

// accept takes connections, again after refuse.
func (c *cable) accept() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", c.address)
	if err != nil {
		return err
	}
	c.listener = listener
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
	return nil
}

// refuse resets all connections, and takes no more.
func (c *cable) refuse() {
	c.mu.Lock()
	listener := c.listener
	c.listener = nil
	c.mu.Unlock()
	if listener != nil {
		_ = listener.Close()
	}
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
