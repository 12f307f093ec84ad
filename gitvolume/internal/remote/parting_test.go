package remote

import (
	"bytes"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestWhoPartedFirst: a remote that ends after the client's greeting was not told to.
func TestWhoPartedFirst(t *testing.T) {
	greeting, handshake, goodbye := 41, 1500, 60
	for name, row := range map[string]struct {
		says        []int
		serverEnded bool
	}{
		"before a word":          {nil, true},
		"after a greeting":       {[]int{greeting}, true},
		"after a handshake":      {[]int{greeting, handshake}, true},
		"after a client's alert": {[]int{handshake, goodbye}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLink(nil)
			l.note(func(f *facts) { f.dials = 1 })
			client, inner := net.Pipe()
			outer, server := net.Pipe()
			l.workers.Go(func() { l.splice(inner, outer, 1) })
			for _, size := range row.says {
				_, err := client.Write(make([]byte, size))
				check(t, err)
				_, err = io.CopyN(&bytes.Buffer{}, server, int64(size))
				check(t, err)
			}
			check(t, server.Close())
			// The link ends the client's side when it has taken note of that.
			_, err := client.Read(make([]byte, 1))
			wantError(t, err, io.EOF)
			check(t, client.Close())
			l.close()
			if got := l.learned().serverEnded; got != row.serverEnded {
				t.Errorf("the server ended first: %t", got)
			}
		})
	}
}

// A connection that breaks after a small word of the client's was not ended for that word:
// as such, the keys that ssh agreed on, it is as short as a goodbye.
func TestConnectionThatBreaks(t *testing.T) {
	const handshake, word = 1500, 44
	for name, row := range map[string]struct{ read, write error }{
		"as the server is read from":  {read: syscall.ECONNRESET},
		"as the server is written to": {write: syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLink(nil)
			l.note(func(f *facts) { f.dials = 1 })
			client, inner := net.Pipe()
			outer, server := net.Pipe()
			breaking := &breakingConn{Conn: outer, read: row.read, write: row.write}
			l.workers.Go(func() { l.splice(inner, breaking, 1) })
			for _, size := range []int{handshake, word} {
				_, err := client.Write(make([]byte, size))
				check(t, err)
				_, err = io.CopyN(&bytes.Buffer{}, server, int64(size))
				check(t, err)
			}
			breaking.broken.Store(true)
			if row.read != nil {
				_, err := server.Write(make([]byte, 1))
				check(t, err)
			} else {
				_, err := client.Write(make([]byte, word))
				check(t, err)
			}
			// The link has taken note of that when it ends a side.
			if row.read != nil {
				_, err := client.Read(make([]byte, 1))
				wantError(t, err, io.EOF)
			} else {
				_, err := server.Read(make([]byte, 1))
				wantError(t, err, io.EOF)
			}
			check(t, client.Close())
			check(t, server.Close())
			l.close()
			if !l.learned().serverEnded {
				t.Error("the client counts as who ended it")
			}
		})
	}
}

// breakingConn is a connection that fails once it is broken.
type breakingConn struct {
	net.Conn
	broken      atomic.Bool
	read, write error
}

func (c *breakingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.broken.Load() && c.read != nil {
		return 0, c.read
	}
	return n, err
}

func (c *breakingConn) Write(b []byte) (int, error) {
	if c.broken.Load() && c.write != nil {
		return 0, c.write
	}
	return c.Conn.Write(b)
}
