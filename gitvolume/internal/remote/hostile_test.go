package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

// stallFor makes a remote that says nothing end soon where that is what is wanted. A
// row that wants anything else must not meet it on a slow machine.
func stallFor(want error) func(*Settings) {
	return func(s *Settings) {
		if errors.Is(want, ErrStalled) {
			s.Stall = 1500 * time.Millisecond
		}
	}
}

// TestUnreachable has servers that are not there, or as good as that.
func TestUnreachable(t *testing.T) {
	hangUp := gittest.Listen(t, func(net.Conn) {})
	greets := gittest.Listen(t, func(conn net.Conn) { _, _ = conn.Write([]byte("SSH-2.0-x\r\n")) })
	for _, row := range []struct {
		name, url string
		want      error
	}{
		{"ssh, closed", "ssh://git@" + gittest.Closed(t) + "/r", ErrUnreachable},
		{"http, closed", "http://" + gittest.Closed(t) + "/r", ErrUnreachable},
		{"https, closed", "https://" + gittest.Closed(t) + "/r", ErrUnreachable},
		{"git, closed", "git://" + gittest.Closed(t) + "/r", ErrUnreachable},
		{"ssh, no such name", "ssh://git@a.invalid/r", ErrUnreachable},
		{"http, no such name", "http://a.invalid/r", ErrUnreachable},
		{"ssh, hangs up", "ssh://git@" + hangUp.Address + "/r", ErrUnreachable},
		{"http, hangs up", "http://" + hangUp.Address + "/r", ErrUnreachable},
		{"https, hangs up", "https://" + hangUp.Address + "/r", ErrUnreachable},
		{"git, hangs up", "git://" + hangUp.Address + "/r", ErrUnreachable},
		{"git, hangs up without a word", "git://" + hangUp.Address + "/r", errWithoutWord},
		{"ssh, greets and hangs up", "ssh://git@" + greets.Address + "/r", ErrUnreachable},
		{"ssh, silent", "ssh://git@" + gittest.Silent(t).Address + "/r", ErrStalled},
		{"http, silent", "http://" + gittest.Silent(t).Address + "/r", ErrStalled},
		{"https, silent", "https://" + gittest.Silent(t).Address + "/r", ErrStalled},
		{"git, silent", "git://" + gittest.Silent(t).Address + "/r", ErrStalled},
		{"http, neither accepts nor refuses", "http://" + gittest.Full(t) + "/r", ErrStalled},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := newCommand(t, stallFor(row.want))
			_, err := c.List(t.Context(), at(t, row.url), "main")
			wantError(t, err, row.want)
			var failure *Failure
			if !errors.As(err, &failure) {
				t.Errorf("%v is no Failure", err)
			}
		})
	}
}

// TestASlowHookOfFiles: what comes from no connection is not watched for silence.
func TestASlowHookOfFiles(t *testing.T) {
	b := gittest.NewBare(t)
	p := newPushing(t, newCommand(t, func(s *Settings) { s.Stall = 200 * time.Millisecond }), b, local(t, b))
	b.Hook("pre-receive", "sleep 1")
	_, err := p.push(p.update("refs/heads/main", "1"), nil)
	check(t, err)
}

// around answers in git's place, unless it returns false.
func around(answer func(http.ResponseWriter, *http.Request) bool) func(http.Handler) http.Handler {
	return func(git http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !answer(w, r) {
				git.ServeHTTP(w, r)
			}
		})
	}
}

func always(status int, header ...string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		if len(header) > 0 {
			w.Header().Set(header[0], header[1])
		}
		http.Error(w, "the server's own words", status)
		return true
	}
}

func TestHTTPAnswers(t *testing.T) {
	html := func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, "<html><body>Please log in</body></html>")
		return true
	}
	files := func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, someID+"\trefs/heads/main\n")
		return true
	}
	endless := func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "/again"+r.URL.String(), http.StatusMovedPermanently)
		return true
	}
	for _, row := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		want   error
		after  time.Duration
	}{
		{name: "401", answer: always(401, "WWW-Authenticate", `Basic realm="x"`), want: ErrAuthentication},
		{name: "401 without a challenge", answer: always(401), want: ErrAuthentication},
		{name: "403", answer: always(403), want: ErrAuthentication},
		{name: "404", answer: always(404), want: ErrNoRepository},
		{name: "410", answer: always(410), want: ErrNoRepository},
		{name: "429", answer: always(429, "Retry-After", "17"), want: ErrUnreachable, after: 17 * time.Second},
		{name: "500", answer: always(500), want: ErrUnreachable},
		{name: "503", answer: always(503, "Retry-After", "120"), want: ErrUnreachable, after: 2 * time.Minute},
		{name: "503 for a year", answer: always(503, "Retry-After", "31536000"), want: ErrUnreachable, after: longestAfter},
		{name: "HTML instead of refs", answer: html, want: ErrFailed},
		{name: "refs of a server that only has files", answer: files, want: ErrFailed},
		{name: "an endless redirect", answer: endless, want: ErrFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := gittest.NewBare(t)
			remote := httpRemote(t, b, gittest.HTTPOptions{Around: around(row.answer)})
			_, err := newCommand(t).List(t.Context(), remote, "main")
			wantError(t, err, row.want)
			var failure *Failure
			if !errors.As(err, &failure) || failure.After != row.after || !strings.Contains(err.Error(), "run git ls-remote: ") {
				t.Errorf("%v, want a wait of %s", err, row.after)
			}
		})
	}
}

// TestPushRefusedByHTTP is C36 where it is not git that refuses.
func TestPushRefusedByHTTP(t *testing.T) {
	is := func(kind error) func(error) bool { return func(err error) bool { return errors.Is(err, kind) } }
	onPush := func(answer func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "git-receive-pack") && answer(w, r)
		}
	}
	for _, row := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
		want   func(error) bool
	}{
		{"403", onPush(always(403)), isDeclined},
		{"413", onPush(always(413)), isDeclined},
		{"401", onPush(always(401, "WWW-Authenticate", `Basic realm="x"`)), is(ErrAuthentication)},
		{"503", onPush(always(503, "Retry-After", "9")), is(ErrUnreachable)},
		{"the connection is closed after the pack", onPush(func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}), is(ErrUnreachable)},
		{"everything is 503", always(503), is(ErrUnreachable)},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := gittest.NewBare(t)
			p := newPushing(t, newCommand(t), b, httpRemote(t, b, gittest.HTTPOptions{User: "git", Around: around(row.answer)}))
			p.b.Grow("main", "f", "0")
			branch, metadata := p.update("refs/heads/main", "1"), p.update(metadataRef, "1")
			for _, with := range []*Update{nil, &metadata} {
				if _, err := p.push(branch, with); !row.want(err) {
					t.Errorf("%v", err)
				}
			}
			p.unmoved(branch)
			p.unmoved(metadata)
		})
	}
}

// TestLostAnswer has a server that takes the push and is gone before it says so.
func TestLostAnswer(t *testing.T) {
	for _, row := range []struct {
		name      string
		comesBack bool
	}{{"and comes back", true}, {"and stays away", false}} {
		t.Run(row.name, func(t *testing.T) {
			b := gittest.NewBare(t)
			gone := false
			lose := func(git http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case gone && !row.comesBack:
						panic(http.ErrAbortHandler)
					case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
						git.ServeHTTP(discarded{}, r)
						gone = true
						panic(http.ErrAbortHandler)
					default:
						git.ServeHTTP(w, r)
					}
				})
			}
			p := newPushing(t, newCommand(t), b, httpRemote(t, b, gittest.HTTPOptions{User: "git", Around: lose}))
			p.b.Grow("main", "f", "0")
			branch := p.update("refs/heads/main", "1")
			_, err := p.push(branch, nil)
			var unknown *Unknown
			if row.comesBack && err != nil || !row.comesBack && !errors.As(err, &unknown) {
				t.Errorf("%v", err)
			}
			p.arrived(branch)
		})
	}
}

// discarded is an answer that nobody gets.
type discarded struct{}

func (discarded) Header() http.Header         { return http.Header{} }
func (discarded) Write(p []byte) (int, error) { return len(p), nil }
func (discarded) WriteHeader(int)             {}

// speaks is a server of git's own protocol that reads the request and then says what it
// likes.
func speaks(t *testing.T, say func(net.Conn)) Remote {
	t.Helper()
	server := gittest.Listen(t, func(conn net.Conn) {
		if _, err := gittest.ReadPacket(conn); err == nil {
			say(conn)
		}
	})
	return at(t, "git://"+server.Address+"/r")
}

const someID = "1234567890123456789012345678901234567890"

func TestHostileServers(t *testing.T) {
	endless := func(part string) func(net.Conn) {
		return func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, part); err != nil {
					return
				}
			}
		}
	}
	advertise := gittest.Advertisement("side-band-64k multi_ack_detailed ofs-delta", someID+" HEAD", someID+" refs/heads/main")
	for _, row := range []struct {
		name string
		say  func(net.Conn)
		want error
	}{
		{"a ref whose object it does not have", func(conn net.Conn) {
			_, _ = io.WriteString(conn, advertise)
			_, _ = gittest.ReadPacket(conn)
			_, _ = io.WriteString(conn, gittest.Packet("NAK\n")+gittest.Packet("\x01PACK\x00\x00\x00\x02\x00\x00\x00\x00\x02\x9d\x08\x82\x3b\xd8\xa8\xea\xb5\x10\xad\x6a\xc7\x5c\x82\x3c\xfd\x3e\xd3\x1e")+gittest.Flush)
		}, ErrFailed},
		{"endless words", func(conn net.Conn) {
			_, _ = io.WriteString(conn, advertise+gittest.Packet("NAK\n"))
			endless(gittest.Packet("\x02" + strings.Repeat("never mind ", 90)))(conn)
		}, ErrTimeout},
		{"endless words without an end of line", func(conn net.Conn) {
			_, _ = io.WriteString(conn, advertise+gittest.Packet("NAK\n"))
			endless(gittest.Packet("\x02" + strings.Repeat("x", 60000)))(conn)
		}, ErrTimeout},
		{"garbage", endless("What is this? "), ErrFailed},
		{"an error", func(conn net.Conn) {
			_, _ = io.WriteString(conn, gittest.Packet("ERR access \x1b[31mdenied\x07"))
		}, ErrFailed},
		{"refs with the names of files", func(conn net.Conn) {
			_, _ = io.WriteString(conn, gittest.Advertisement("", someID+" refs/heads/../../config", someID+" refs/heads/main"))
		}, ErrFailed},
		{"trickling", func(conn net.Conn) {
			for _, c := range advertise {
				if _, err := conn.Write([]byte{byte(c)}); err != nil {
					return
				}
				time.Sleep(300 * time.Millisecond)
			}
		}, ErrTimeout},
		{"silent after the refs", func(conn net.Conn) {
			_, _ = io.WriteString(conn, advertise)
			_, _ = io.Copy(io.Discard, conn)
		}, ErrStalled},
		{"a pack that breaks off", func(conn net.Conn) {
			_, _ = io.WriteString(conn, advertise)
			_, _ = gittest.ReadPacket(conn)
			_, _ = io.WriteString(conn, gittest.Packet("NAK\n")+gittest.Packet("\x01PACK\x00\x00\x00\x02\x00\x00\x00\x09\x95"))
		}, ErrFailed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := newCommand(t, stallFor(row.want))
			store := gittest.NewBare(t)
			limit := time.Minute
			if errors.Is(row.want, ErrTimeout) {
				limit = 2 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := c.Fetch(ctx, Request{Dir: store.Dir, Remote: speaks(t, row.say), Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			wantError(t, err, row.want)
			if strings.ContainsAny(err.Error(), "\x1b\x07\n") || len(err.Error()) > 2000 {
				t.Errorf("the message has %d bytes: %q", len(err.Error()), err)
			}
			if left := unfinished(t, store.Dir); len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
			if refs := store.Refs(); len(refs) > 0 {
				t.Errorf("the store has %v", refs)
			}
			store.Git("fsck")
		})
	}
}

// TestALongList has more refs than anybody wants.
func TestALongList(t *testing.T) {
	const many = 50000
	refs := []string{someID + " refs/heads/main"}
	for i := range many {
		refs = append(refs, fmt.Sprintf("%s refs/pull/%d/head", someID, i))
	}
	remote := speaks(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, gittest.Advertisement("", refs...))
		_, _ = io.Copy(io.Discard, conn)
	})
	list, err := newCommand(t).List(t.Context(), remote, "main")
	check(t, err)
	if list.Count != many+1 || len(list.tips) != 1 || len(list.Branches) != 1 {
		t.Errorf("%d refs, %d kept", list.Count, len(list.tips))
	}
}

func TestRefusedAddress(t *testing.T) {
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	no := errors.New("not this one")
	var asked []string
	server := gittest.StartHTTP(t, filepath.Dir(b.Dir), gittest.HTTPOptions{Address: "127.0.0.2"})
	elsewhere := gittest.StartHTTP(t, filepath.Dir(b.Dir), gittest.HTTPOptions{Around: around(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, server.URL(r.URL.String()), http.StatusFound)
		return true
	})})
	for name, url := range map[string]string{
		"http": server.URL("/r.git"), "ssh": "ssh://git@127.0.0.2:1/r", "git": "git://127.0.0.2:1/r",
		"a redirect": elsewhere.URL("/r.git"),
	} {
		remote := at(t, url)
		remote.Session = nil
		remote.Permit = func(host string, address netip.AddrPort) error {
			asked = append(asked, fmt.Sprint(host, " ", address))
			if address.Addr().String() == "127.0.0.2" {
				return no
			}
			return nil
		}
		_, err := newCommand(t).List(t.Context(), remote, "main")
		wantError(t, err, ErrRefusedAddress)
		wantError(t, err, no)
		if len(asked) == 0 {
			t.Errorf("%s: nothing was asked", name)
		}
	}
	if got := len(server.Requests()); got > 0 {
		t.Errorf("a refused address got %d requests", got)
	}
}

// TestRefusedAddressBehindAProxy: what the proxy would connect to is asked about before.
func TestRefusedAddressBehindAProxy(t *testing.T) {
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	no := errors.New("not this one")
	server := gittest.StartHTTP(t, filepath.Dir(b.Dir), gittest.HTTPOptions{})
	proxy := gittest.StartProxy(t)
	for _, row := range []struct {
		name, url, except string
		refused           string
		want              error
	}{
		{name: "an address", url: server.URL("/r.git"), refused: "127.0.0.1", want: ErrRefusedAddress},
		{name: "a name", url: strings.Replace(server.URL("/r.git"), "127.0.0.1", "localhost", 1), refused: "127.0.0.1", want: ErrRefusedAddress},
		{name: "another address", url: server.URL("/r.git"), refused: "192.0.2.1"},
		{name: "a name that only the proxy knows", url: "http://a.invalid/r.git", refused: "127.0.0.1", want: ErrUnreachable},
		{name: "not by the proxy", url: server.URL("/r.git"), except: "127.0.0.1", refused: "127.0.0.1", want: ErrRefusedAddress},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCommand(t, func(s *Settings) {
				s.Environment = append(s.Environment, "http_proxy="+proxy.URL, "no_proxy="+row.except)
			})
			remote := at(t, row.url)
			remote.Permit = func(_ string, address netip.AddrPort) error {
				if address.Addr().String() == row.refused {
					return no
				}
				return nil
			}
			before := len(proxy.Seen())
			_, err := c.List(t.Context(), remote, "main")
			if row.want == nil {
				check(t, err)
			} else {
				wantError(t, err, row.want)
			}
			used := len(proxy.Seen()) > before
			if refused := errors.Is(err, no); refused == used || refused != errors.Is(row.want, ErrRefusedAddress) {
				t.Errorf("refused %t, by the proxy %t: %v", refused, used, err)
			}
		})
	}
}
