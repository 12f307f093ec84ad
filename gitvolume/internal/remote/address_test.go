package remote

import (
	"errors"
	"net/netip"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestOneAddressOfTwoIsRefused: that the other does not answer is what is wrong.
func TestOneAddressOfTwoIsRefused(t *testing.T) {
	closed := netip.MustParseAddrPort(gittest.Closed(t))
	refused := netip.MustParseAddr("127.0.0.2")
	l := newLink(func(_ string, address netip.AddrPort) error {
		if address.Addr() == refused {
			return errors.New("not that one")
		}
		return nil
	})
	defer l.close()
	for _, addresses := range [][]netip.Addr{{refused, closed.Addr()}, {closed.Addr(), refused}} {
		if _, err := l.first("h", addresses, closed.Port()); err == nil || errors.Is(err, errNotPermitted) {
			t.Errorf("%v: %v", addresses, err)
		}
	}
	_, err := l.first("h", []netip.Addr{refused}, closed.Port())
	wantError(t, err, errNotPermitted)
}
