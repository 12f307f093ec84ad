package remote

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

// TestSilentProxy: no byte of a proxied run comes by the link, and curl watches only the
// server's answers.
func TestSilentProxy(t *testing.T) {
	tunnelsToNobody := func(conn net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil || request.Method != http.MethodConnect {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn)
	}
	silent := func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }
	for name, row := range map[string]struct {
		url   string
		proxy func(net.Conn)
		want  error
	}{
		"of a connection":            {"https://h.invalid/r", silent, ErrStalled},
		"after TLS was begun":        {"https://h.invalid/r", tunnelsToNobody, ErrStalled},
		"of a request, by curl":      {"http://h.invalid/r", silent, ErrUnreachable},
		"that trickles its own head": {"https://h.invalid/r", trickle, ErrStalled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := gittest.Listen(t, row.proxy)
			c := newCommand(t, stallFor(ErrStalled), func(s *Settings) {
				s.Environment = append(s.Environment, "https_proxy=http://"+proxy.Address, "http_proxy=http://"+proxy.Address)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := c.List(ctx, at(t, row.url), "main")
			wantError(t, err, row.want)
		})
	}
}

// trickle begins an answer that never has a whole header.
func trickle(conn net.Conn) {
	for {
		if _, err := io.WriteString(conn, "x"); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestSlowServerBehindAProxy: what takes longer than Stall and moves all the while is let
// be, although git says nothing of it.
func TestSlowServerBehindAProxy(t *testing.T) {
	const service = "git-upload-pack"
	proxy := gittest.Listen(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/x-"+service+"-advertisement\r\n\r\n")
		for _, c := range gittest.Packet("# service=" + service + "\n") {
			if _, err := conn.Write([]byte{byte(c)}); err != nil {
				return
			}
			time.Sleep(150 * time.Millisecond)
		}
		_, _ = io.WriteString(conn, gittest.Flush+gittest.Advertisement("", someID+" refs/heads/main"))
	})
	c := newCommand(t, stallFor(ErrStalled), func(s *Settings) { s.Environment = append(s.Environment, "http_proxy=http://"+proxy.Address) })
	refs, err := c.List(t.Context(), at(t, "http://h.invalid/r"), "main")
	check(t, err)
	if refs.Tip("refs/heads/main").IsZero() {
		t.Errorf("%+v", refs)
	}
}
