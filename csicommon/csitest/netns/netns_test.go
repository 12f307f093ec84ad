package netns_test

import (
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/netns"
)

// TestCut: what is sent over a link that is cut does not arrive, is not refused either, and
// arrives once the link is there again.
func TestCut(t *testing.T) {
	netns.Run(t, func(t *testing.T, link *netns.Link) {
		listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(link.Address(), 0)))
		check(t, err)
		client, err := net.Dial("tcp", listener.Addr().String())
		check(t, err)
		server, err := listener.Accept()
		check(t, err)
		link.Cut(t)
		_, err = io.WriteString(client, "x")
		check(t, err)
		check(t, server.SetReadDeadline(time.Now().Add(time.Second)))
		if n, err := server.Read(make([]byte, 1)); !os.IsTimeout(err) {
			t.Errorf("%d bytes arrive, %v", n, err)
		}
		if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
			t.Errorf("a connection to %s is made", conn.RemoteAddr())
		}
		link.Mend(t)
		check(t, server.SetReadDeadline(time.Now().Add(2*time.Minute)))
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Errorf("it does not arrive: %v", err)
		}
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
