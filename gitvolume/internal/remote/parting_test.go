package remote

import (
	"bytes"
	"io"
	"net"
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
