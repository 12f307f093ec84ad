package httplistener

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const request = "GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n"

// limits are those of the tests.
var limits = Bounds{
	Connections: 64, HeaderBytes: 8 << 10,
	ReadHeader: 5 * time.Second, Read: 10 * time.Second, Write: 20 * time.Second, Idle: 30 * time.Second, Shutdown: 2 * time.Second,
}

func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	_, _ = io.WriteString(w, "ok")
}

// serve runs a listener on a port of the kernel's choice.
func serve(t *testing.T) *Listener {
	t.Helper()
	listener, err := Listen("127.0.0.1:0", http.HandlerFunc(answer), limits)
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	served.Go(func() { _ = listener.Serve(ctx) })
	t.Cleanup(func() { stop(); served.Wait() })
	return listener
}

func dial(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func ask(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatalf("send a request: %v", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("answer %d, %v", response.StatusCode, err)
	}
}

// wantClosed fails when conn is still open at its deadline.
func wantClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is still open")
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	l := serve(t)
	conns := make([]net.Conn, 3*limits.Connections)
	for i := range conns {
		conns[i] = dial(t, l)
		ask(t, conns[i])
	}
	for _, conn := range conns[:2*limits.Connections] {
		wantClosed(t, conn)
	}
	ask(t, conns[len(conns)-1]) // the newest was not the one to go
}

// The kubelet's probe is answered whatever others leave lying around, and at
// once: it has a second by default.
func TestAProbeIsAnsweredAmong(t *testing.T) {
	for _, row := range []struct{ name, sent string }{
		{"connections that say nothing", ""},
		{"half requests", request[:20]},
		{"requests whose answer nobody reads", request},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := serve(t)
			for range 5 * limits.Connections {
				if _, err := io.WriteString(dial(t, l), row.sent); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			ask(t, dial(t, l))
			if took := time.Since(start); took > limits.ReadHeader*4/5 {
				t.Errorf("the probe waited %v for the others", took)
			}
		})
	}
}

// A connection that was only just accepted is not idle: it is the one that comes
// to ask.
func TestTheIdleOneGoesFirst(t *testing.T) {
	open := &connections{limit: 3}
	var names []string
	at := func(name string) net.Conn { return named{name: name, closed: &names} }
	stale, slow, asking := at("stale"), at("slow"), at("asking")
	open.track(slow, http.StateNew)
	open.track(slow, http.StateActive)
	open.track(stale, http.StateNew)
	open.track(stale, http.StateActive)
	open.track(stale, http.StateIdle)
	open.track(asking, http.StateNew)
	open.track(at("fourth"), http.StateNew)
	open.track(stale, http.StateClosed) // as the server reports after the close
	open.track(at("fifth"), http.StateNew)
	open.track(asking, http.StateClosed)
	open.track(at("sixth"), http.StateNew)
	if got := strings.Join(names, " "); got != "stale slow" {
		t.Errorf("closed %q, want the idle one and then the oldest", got)
	}
}

// named is a connection that notes when it is closed.
type named struct {
	net.Conn
	name   string
	closed *[]string
}

func (n named) Close() error {
	*n.closed = append(*n.closed, n.name)
	return nil
}

// pipes is a listener without a kernel, for a clock without waiting.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

func TestEveryConnectionEnds(t *testing.T) {
	for _, row := range []struct {
		name, sent string
		reads      bool // the client reads at once, and not only when all is over
		within     time.Duration
	}{
		{"nothing sent", "", true, limits.ReadHeader},
		{"half a header", request[:20], true, limits.ReadHeader},
		{"half a body", "POST /healthz HTTP/1.1\r\nHost: node\r\nContent-Length: 9\r\n\r\nabc", true, limits.Read},
		{"one request and then nothing", request, true, limits.Idle},
		{"an answer not read", request, false, limits.Write},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				listener := make(pipes)
				server := newServer(http.HandlerFunc(answer), limits)
				var served sync.WaitGroup
				served.Go(func() { _ = server.Serve(listener) })
				client, conn := net.Pipe()
				listener <- conn
				start := time.Now()
				go func() { _, _ = io.WriteString(client, row.sent) }()
				if !row.reads {
					time.Sleep(row.within + time.Second)
				}
				ended := make(chan struct{})
				go func() { _, _ = io.Copy(io.Discard, client); close(ended) }()
				select {
				case <-ended:
				case <-time.After(time.Hour):
					t.Error("the connection is held for ever")
				}
				if took := time.Since(start); took < row.within || took > row.within+time.Second {
					t.Errorf("ended after %v, want %v", took, row.within)
				}
				_ = client.Close()
				close(listener)
				_ = server.Close()
				served.Wait()
			})
		})
	}
}
