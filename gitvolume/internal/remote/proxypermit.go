package remote

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// permitted asks the Permit about a host that a proxy is to connect to. That is the best
// that can be done: the proxy resolves the name itself, later, and follows redirects of
// the server unseen. So none of the addresses may be a refused one, since it is not known
// which of them the proxy takes; and a name that only the proxy can resolve is left to it.
func (c *Command) permitted(ctx context.Context, remote *Remote) error {
	if remote == nil || remote.Permit == nil || c.proxies.proxy(remote.URL) == "" {
		return nil
	}
	host := remote.URL.Host
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil // Behind a proxy a node need not know any name.
	}
	for _, address := range addresses {
		target := netip.AddrPortFrom(address.Unmap(), uint16(remote.URL.Port))
		if err := remote.Permit(host, target); err != nil {
			return fmt.Errorf("have the proxy connect to %s: %w: %w", target, errNotPermitted, err)
		}
	}
	return nil
}
