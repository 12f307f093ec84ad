package attributes

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// ErrAddress is wrapped by every error of Addresses.Check.
var ErrAddress = errors.New("the address is not reached for inline volumes")

// Addresses are the values of --allow-address: what inline volumes may reach although it
// is the node itself, its link, or the cloud's metadata. The zero value allows none.
type Addresses struct{ allowed []netip.Prefix }

// ParseAddresses reads addresses and ranges of addresses (CIDR).
func ParseAddresses(texts []string) (Addresses, error) {
	var a Addresses
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if !strings.Contains(text, "/") {
			var addr netip.Addr
			addr, err = netip.ParseAddr(text)
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		switch {
		case err != nil || strings.Contains(text, "%"):
			return Addresses{}, refuse(text, "is neither an IP address nor a range of them, as in 10.0.0.0/8")
		case prefix.Addr().Is4In6():
			return Addresses{}, refuse(text, "is an IPv4 address in IPv6; write the IPv4 address")
		case prefix.Masked() != prefix:
			return Addresses{}, refuse(text, "has bits beyond its length; the range is "+prefix.Masked().String())
		}
		a.allowed = append(a.allowed, prefix)
	}
	return a, nil
}

// Check refuses an address that a name of an inline volume's URL was resolved to, or
// that the URL has itself: any author of a pod chooses these URLs, and must not reach
// through the node what only the node can. It is asked about the address that is then
// connected to, or a second answer of the name server would pass by it.
func (a Addresses) Check(addr netip.Addr) error {
	addr = addr.WithZone("")
	if !addr.IsValid() {
		return fmt.Errorf("no address: %w", ErrAddress)
	}
	for _, one := range append([]netip.Addr{addr}, embedded(addr)...) {
		if what := forbidden(one); what != "" && !a.allows(addr) && !a.allows(one) {
			return fmt.Errorf("%s is %s; an operator can set --allow-address: %w", addr, what, ErrAddress)
		}
	}
	return nil
}

func (a Addresses) allows(addr netip.Addr) bool {
	for _, prefix := range a.allowed {
		if prefix.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// forbidden says what a plain address is that inline volumes do not reach.
func forbidden(addr netip.Addr) string {
	switch {
	case addr.IsLoopback():
		return "a loopback address"
	case addr.IsUnspecified(), within(addr, "0.0.0.0/8"):
		return "an unspecified address, which is the node itself"
	case isMetadata(addr):
		return "a cloud's metadata address"
	case addr.IsLinkLocalUnicast(), within(addr, "fec0::/10"):
		return "a link-local address"
	case addr.IsMulticast(), addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "a multicast or broadcast address"
	}
	return ""
}

// isMetadata knows where clouds answer their machines, and whoever asks from one, with
// its credentials.
func isMetadata(addr netip.Addr) bool {
	// AWS answers at several of these, one of which gives a pod's credentials.
	if within(addr, "fd00:ec2::/32") {
		return true
	}
	switch addr.String() {
	case "169.254.169.254", // most
		"fd20:ce::254",       // Google
		"fd00:c1::a9fe:a9fe", // Oracle
		"fd00:42::42",        // Scaleway
		"100.100.100.200",    // Alibaba
		"192.0.0.192",        // Oracle, of old
		"168.63.129.16":      // Azure's host
		return true
	}
	return false
}

// embedded are the IPv4 addresses that an IPv6 address leads to by one of the ways from
// IPv6 to IPv4: mapped, compatible, NAT64 (with the well-known and the local prefix),
// 6to4 and Teredo.
func embedded(addr netip.Addr) []netip.Addr {
	if addr.Is4() {
		return nil
	}
	b := addr.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case addr.Is4In6():
		return []netip.Addr{addr.Unmap()}
	case within(addr, "64:ff9b::/96"):
		return []netip.Addr{last}
	case within(addr, "::/96") && !addr.IsUnspecified() && !addr.IsLoopback():
		return []netip.Addr{last}
	case within(addr, "64:ff9b:1::/48"):
		// A network chooses how long its prefix is, and so where the address stands.
		if within(addr, "64:ff9b:1::/96") {
			return []netip.Addr{last}
		}
		return []netip.Addr{
			last,
			netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]}),
			netip.AddrFrom4([4]byte{b[7], b[9], b[10], b[11]}),
			netip.AddrFrom4([4]byte(b[9:13])),
		}
	case within(addr, "2002::/16"):
		return []netip.Addr{netip.AddrFrom4([4]byte(b[2:6]))}
	case within(addr, "2001::/32"):
		return []netip.Addr{netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	}
	return nil
}

func within(addr netip.Addr, prefix string) bool { return netip.MustParsePrefix(prefix).Contains(addr) }
