package published

import (
	"fmt"
	"net/netip"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/remote"
)

// reach is what volumes of the kind may connect to, beyond what Parse decides by the URL:
// a server may redirect, and a name may be of any address. The limits are a text that is
// another for everything else that may be reached.
func (v *Volumes) reach(kind attributes.Kind) (permit remote.Permit, limits string) {
	rules, addresses := v.settings.Rules, v.settings.Addresses
	switch {
	case kind == attributes.KindInline:
		return func(host string, at netip.AddrPort) error {
			if err := rules.CheckHost(host, at.Port()); err != nil {
				return err
			}
			return addresses.Check(at.Addr())
		}, fmt.Sprintf("hosts %s addresses %s", rules, addresses)
	case rules.LimitsHosts():
		return func(host string, at netip.AddrPort) error { return rules.CheckHost(host, at.Port()) }, "hosts " + rules.String()
	}
	return nil, ""
}
