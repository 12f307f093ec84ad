package server_test

import (
	"bytes"
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"liken.sh/csicommon/server"
)

// stopBound is far below the minute that gRPC waits for a client that does not
// answer, and far above what a stop takes.
const stopBound = 20 * time.Second

func connect(t *testing.T, socket string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// greet does HTTP/2's handshake and nothing more: no ping is ever answered.
func greet(t *testing.T, conn net.Conn) *http2.Framer {
	t.Helper()
	if _, err := conn.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	for { // the server's settings, and its acknowledgement of ours
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if settings, is := frame.(*http2.SettingsFrame); is && settings.IsAck() {
			return framer
		}
	}
}

// startCall sends a publish's headers and the first bytes of its message.
func startCall(t *testing.T, framer *http2.Framer, message []byte) {
	t.Helper()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: "/csi.v1.Node/NodePublishVolume"},
		{Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		if err := encoder.WriteField(field); err != nil {
			t.Fatal(err)
		}
	}
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteData(1, false, message); err != nil {
		t.Fatal(err)
	}
}

func wantStopped(t *testing.T, f *fixture) {
	t.Helper()
	select {
	case err := <-f.served:
		if err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	case <-time.After(stopBound):
		t.Fatal("a client without a call holds up the stop")
	}
}

func TestStopDoesNotWaitForClients(t *testing.T) {
	for _, row := range []struct {
		name   string
		client func(*testing.T, net.Conn)
	}{
		{"that only connected", func(*testing.T, net.Conn) {}},
		{"that sent half a greeting", func(t *testing.T, conn net.Conn) {
			if _, err := conn.Write([]byte(http2.ClientPreface)[:9]); err != nil {
				t.Fatal(err)
			}
		}},
		{"that only greeted", func(t *testing.T, conn net.Conn) { greet(t, conn) }},
		{"that sent half a request", func(t *testing.T, conn net.Conn) {
			startCall(t, greet(t, conn), []byte{0, 0, 0, 0, 200, 1, 2}) // 200 bytes announced, 2 sent
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := start(t, &node{}, healthy)
			row.client(t, connect(t, f.socket))
			if err := server.Probe(t.Context(), f.socket); err != nil { // the client before it is accepted
				t.Fatal(err)
			}
			f.stop()
			wantStopped(t, f)
		})
	}
}

// The goodbye to bad clients must not cut a running call short, nor its answer,
// and the call is logged although it ends last.
func TestStopFinishesARunningCallAmongBadClients(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	f := start(t, &node{publish: func(ctx context.Context) error {
		close(entered)
		<-release
		return ctx.Err()
	}}, healthy)
	answered := make(chan error, 1)
	go func() {
		_, err := f.client.NodePublishVolume(context.WithoutCancel(t.Context()), &csi.NodePublishVolumeRequest{VolumeId: "long"})
		answered <- err
	}()
	<-entered
	connect(t, f.socket)
	startCall(t, greet(t, connect(t, f.socket)), []byte{0, 0, 0, 0, 200})
	f.stop()
	select {
	case err := <-f.served:
		t.Fatalf("the server stopped under a running call: %v", err)
	case <-time.After(server.HandshakeTimeout + 3*time.Second): // longer than any client is waited for
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the running call: %v", err)
	}
	wantStopped(t, f)
	if log := f.log.String(); strings.Count(log, "long") != 1 {
		t.Errorf("want one line about the call:\n%s", log)
	}
}

// A call that comes while another is finished is not begun: one client after the
// other would keep the plugin alive.
func TestNoCallBeginsAfterTheStop(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 2), make(chan struct{})
	f := start(t, &node{publish: func(context.Context) error { entered <- struct{}{}; <-release; return nil }}, healthy)
	answered := make(chan error, 1)
	go func() {
		_, err := f.client.NodePublishVolume(context.WithoutCancel(t.Context()), &csi.NodePublishVolumeRequest{})
		answered <- err
	}()
	<-entered
	late := greet(t, connect(t, f.socket)) // heeds no GOAWAY
	f.stop()
	waitFor(t, func() bool { return strings.Contains(f.log.String(), "finishing running calls") })
	waitForGoAway(t, late)
	startCall(t, late, []byte{0, 0, 0, 0, 0}) // an empty request
	if err := late.WriteData(1, true, nil); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(f.log.String(), "Unavailable") })
	if len(entered) != 0 {
		t.Error("a call began after the stop")
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the running call: %v", err)
	}
	wantStopped(t, f)
}

func waitForGoAway(t *testing.T, framer *http2.Framer) {
	t.Helper()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, is := frame.(*http2.GoAwayFrame); is {
			return
		}
	}
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(stopBound); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}

func TestProbeTakesThePathAsItIs(t *testing.T) {
	for _, name := range []string{"a%41", "a%zz", "a#b", "a?b", "a b", "plain"} {
		t.Run(name, func(t *testing.T) {
			f := startAt(t, filepath.Join(t.TempDir(), name, "csi.sock"), &node{}, healthy)
			if err := server.Probe(t.Context(), f.socket); err != nil {
				t.Errorf("Probe = %v", err)
			}
		})
	}
}
