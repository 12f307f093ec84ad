package remote

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/gittest"
)

// resolveAt has all names be asked for at an address, in the test.
func resolveAt(t *testing.T, address string) {
	t.Helper()
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", address)
	}}
}

// TestUnresolvedIsSaidTheSameWay: each question comes from a port of its own, which must
// not make an outage news each time.
func TestUnresolvedIsSaidTheSameWay(t *testing.T) {
	resolveAt(t, gittest.Closed(t))
	said := func() string {
		l := newLink(nil)
		defer l.close()
		_, err := l.connect("forge.invalid", "443")
		if dns := (*net.DNSError)(nil); !errors.As(err, &dns) {
			t.Errorf("%v is no error of the resolver", err)
		}
		return err.Error()
	}
	const want = `resolve the remote's host: "forge.invalid": the resolver cannot be reached, or fails`
	if first, second := said(), said(); first != want || second != want {
		t.Errorf("said %q, then %q, want %q", first, second, want)
	}
}

// TestUnresolvedOverSSHIsSaidTheSameWay: there git and ssh repeat it.
func TestUnresolvedOverSSHIsSaidTheSameWay(t *testing.T) {
	resolveAt(t, gittest.Closed(t))
	c := newCommand(t)
	said := func() string {
		_, err := c.List(t.Context(), at(t, "ssh://git@forge.invalid/r.git"), "main")
		wantError(t, err, ErrUnreachable)
		return err.Error()
	}
	if first, second := said(), said(); first != second || !strings.Contains(first, "forge.invalid") {
		t.Errorf("said %q, then %q", first, second)
	}
}

func TestUnresolvedSaysWhy(t *testing.T) {
	other := errors.New("another error")
	for _, row := range []struct {
		err  error
		want string
	}{
		{&net.DNSError{Err: "no such host", Name: "h", Server: "10.96.0.10:53", IsNotFound: true}, `"h": no such host`},
		{&net.DNSError{Err: "read udp 10.0.0.1:4711->10.96.0.10:53: i/o timeout", Name: "h", IsTimeout: true}, `"h": the resolver does not answer in time`},
		{&net.DNSError{Err: "server misbehaving", Name: "h", IsTemporary: true}, `"h": the resolver cannot be reached, or fails`},
		{other, "another error"},
	} {
		if got := unresolved("h", row.err); got.Error() != row.want || !errors.Is(got, row.err) {
			t.Errorf("%v: %v, want %s", row.err, got, row.want)
		}
	}
}

// TestUnreachedIsSaidTheSameWay: a resolver gives the addresses of a name in turns.
func TestUnreachedIsSaidTheSameWay(t *testing.T) {
	port := netip.MustParseAddrPort(gittest.Closed(t)).Port()
	addresses := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.10"), netip.MustParseAddr("127.0.0.1")}
	turned := []netip.Addr{addresses[1], addresses[2], addresses[0]}
	no := errors.New("not that one")
	for name, row := range map[string]struct {
		permit Permit
		want   error
	}{
		"none answers":   {nil, unix.ECONNREFUSED},
		"none permitted": {func(string, netip.AddrPort) error { return no }, no},
	} {
		l := newLink(row.permit)
		defer l.close()
		_, first := l.first("h", slices.Clone(addresses), port)
		_, second := l.first("h", slices.Clone(turned), port)
		wantError(t, first, row.want)
		if first.Error() != second.Error() {
			t.Errorf("%s: said %q, then %q", name, first, second)
		}
	}
}

// TestProxyThatIsDownIsSaidTheSameWay: curl says how long it tried.
func TestProxyThatIsDownIsSaidTheSameWay(t *testing.T) {
	proxy := gittest.Closed(t)
	c := newCommand(t, func(s *Settings) { s.Environment = append(s.Environment, "http_proxy=http://"+proxy) })
	_, err := c.List(t.Context(), at(t, "http://h.invalid/r.git"), "main")
	wantError(t, err, ErrUnreachable)
	if text := err.Error(); !strings.Contains(text, "Failed to connect to 127.0.0.1") || strings.Contains(text, " ms") {
		t.Errorf("said %q", text)
	}
}

func TestGitsOwnWordsHaveNoFigures(t *testing.T) {
	for in, want := range map[string]string{
		"fatal: unable to access 'http://h/r/': Failed to connect to h port 1 after 12 ms: Couldn't connect to server": "fatal: unable to access 'http://h/r/': Failed to connect to h port 1: Couldn't connect to server",
		"fatal: unable to access 'http://h/r/': Connection timed out after 300012 milliseconds":                        "fatal: unable to access 'http://h/r/': Connection timed out",
		"error: RPC failed; curl 18 transfer closed with 4711 bytes remaining to read":                                 "error: RPC failed; curl 18 transfer closed with bytes remaining to read",
		"error: 4711 bytes of body are still expected":                                                                 "error: bytes of body are still expected",
		"remote: error: gave up after 12 ms":                                                                           "remote: error: gave up after 12 ms",
		"fatal: the remote end hung up unexpectedly":                                                                   "fatal: the remote end hung up unexpectedly",
	} {
		if got := withoutFigures(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
