package webhook

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"liken.sh/csicommon/csitest/apiserver"
	"liken.sh/csicommon/httplistener"
)

// listens serves a webhook on a real socket, which may know no volume.
func listens(t *testing.T) string {
	t.Helper()
	listener, err := httplistener.Listen("127.0.0.1:0", newHook(t, apiserver.New()).Webhook, Bounds())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- listener.Serve(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return listener.Address()
}

// sends writes a request and returns what it is answered, and whether the connection is
// then closed.
func sends(t *testing.T, address string, request io.Reader) (code int, isClosed bool) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	defer func() { _ = conn.Close(); <-written }()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))               // a socket has one
	go func() { defer close(written); _, _ = io.Copy(conn, request) }() // it may be cut off
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	return answer.StatusCode, answer.Close
}

// endless is a body of chunks that never ends.
type endless struct{ sent int }

func (e *endless) Read(p []byte) (int, error) {
	chunk := "1000\r\n" + strings.Repeat("x", 0x1000) + "\r\n"
	n := copy(p, chunk[e.sent%len(chunk):])
	e.sent += n
	return n, nil
}

// Bodies that are too large are cut off the same way for every path, also for those that
// nobody has.
func TestLargeBodies(t *testing.T) {
	address := listens(t)
	for _, path := range []string{"/webhook/shop/forge", "/nowhere"} {
		head := "POST " + path + " HTTP/1.1\r\nHost: h\r\n"
		large := &endless{}
		for name, request := range map[string]io.Reader{
			"announced": strings.NewReader(head + "Content-Length: 1048577\r\n\r\n"),
			"endless":   io.MultiReader(strings.NewReader(head+"Transfer-Encoding: chunked\r\n\r\n"), large),
		} {
			if code, isClosed := sends(t, address, request); code != http.StatusRequestEntityTooLarge || !isClosed {
				t.Errorf("%s, %s: %d, closed %v", path, name, code, isClosed)
			}
		}
		if large.sent > 16*bodyLimit {
			t.Errorf("%s: it took %d bytes", path, large.sent)
		}
	}
}

// Many large bodies at once, none of which ends, take a bounded share of memory.
func TestManyLargeBodies(t *testing.T) {
	address := listens(t)
	head := []byte("POST /webhook/shop/forge HTTP/1.1\r\nHost: h\r\nContent-Length: 1048576\r\n\r\n{\"a\":\"")
	body := slices.Concat(head, bytes.Repeat([]byte("x"), bodyLimit-1000))
	inUse := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse
	}
	runtime.GC()
	before := inUse()
	var clients, writing sync.WaitGroup
	ends := make(chan struct{})
	for range 400 {
		writing.Add(1)
		clients.Go(func() {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
				_, _ = conn.Write(body) // Above its bound the listener closes some.
			}
			writing.Done()
			<-ends
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	highest := uint64(0)
	for isOver := false; !isOver; {
		select {
		case <-written:
			isOver = true
		case <-time.After(5 * time.Millisecond):
		}
		highest = max(highest, inUse())
	}
	close(ends)
	clients.Wait()
	if highest > before+20<<20 {
		t.Errorf("the heap grew from %d bytes to %d", before, highest)
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	address := listens(t)
	for request, want := range map[string]int{
		"GET /webhook/shop/forge HTTP/1.1\r\nHost: h\r\n\r\n":                                                   http.StatusMethodNotAllowed,
		"GET / HTTP/1.1\r\nHost: h\r\n\r\n":                                                                     http.StatusMethodNotAllowed,
		"hello\r\n\r\n":                                                                                         http.StatusBadRequest,
		"POST /webhook/shop/forge HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n":                             http.StatusBadRequest,
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n":                                http.StatusRequestTimeout,
		"POST / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n":                          http.StatusRequestHeaderFieldsTooLarge,
		"POST /webhook/%zz HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n":                                    http.StatusBadRequest,
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}":                                             http.StatusInternalServerError, // No cluster was read.
		"POST /webhook/shop/forge HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nX-Gitlab-Token: s3cret\r\n\r\n{}": http.StatusInternalServerError,
	} {
		if code, _ := sends(t, address, strings.NewReader(request)); code != want {
			t.Errorf("%.60q: %d, want %d", request, code, want)
		}
	}
}

// cut is a body that ends with an error in the place of its end.
type cut struct {
	io.Reader
	err error
}

func (c cut) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err == io.EOF {
		return n, c.err
	}
	return n, err
}

// A body that stalls until the listener's time for it is over, or is left off, is refused as
// it is for all paths, and marks nothing, though what has come is a push that is signed.
func TestSlowBodies(t *testing.T) {
	bubble(t, func(t *testing.T, h *hook) {
		push, large := h.push(), deliver("github", "push", "s3cret", h.largePush(bodyLimit/2))
		token := deliver("gitlab", "Push Hook", "s3cret", fixture(t, "gitlab-push"))
		for _, path := range []string{"/webhook/shop/forge", "/nowhere"} {
			for name, row := range map[string]struct {
				d      delivery
				length int
				err    error
				took   time.Duration
			}{
				"a start":           {push, 100, os.ErrDeadlineExceeded, 0},
				"all but the end":   {push, len(push.body), os.ErrDeadlineExceeded, 0},
				"left off":          {push, 100, io.ErrUnexpectedEOF, 0},
				"left off, a token": {token, len(token.body), io.ErrUnexpectedEOF, 0},
				"half of much":      {large, startLimit * 2, os.ErrDeadlineExceeded, secretWithin},
				"left off much":     {large, len(large.body), io.ErrUnexpectedEOF, secretWithin},
			} {
				request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, cut{bytes.NewReader(row.d.body[:row.length]), row.err})
				request.Header, request.ContentLength = row.d.header, int64(len(row.d.body)+1)
				answer, began := httptest.NewRecorder(), time.Now()
				h.ServeHTTP(answer, request)
				if answer.Code != http.StatusRequestTimeout || answer.Header().Get("Connection") != "close" || time.Since(began) != row.took {
					t.Errorf("%s, %s: %d %v after %v", path, name, answer.Code, answer.Header(), time.Since(began))
				}
			}
		}
		h.wantMarked()
	})
	if Bounds().Read != readTimeout || Bounds().Write < readTimeout+patience {
		t.Errorf("the bounds are %+v", Bounds())
	}
}
