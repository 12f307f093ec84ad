package attributes

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrHost is wrapped by every error of Rules.CheckHost.
var ErrHost = errors.New("the host is not among those that this node may reach (--allow-url)")

// LimitsHosts tells whether there are hosts that CheckHost refuses.
func (r Rules) LimitsHosts() bool { return len(r.Allow) > 0 }

// CheckHost refuses a connection to a host, of which none of the patterns lets a node
// reach anything at that port. It is for what a server redirects to, which Parse has not
// seen; schemes and paths are not looked at.
func (r Rules) CheckHost(host string, port uint16) error {
	if !r.LimitsHosts() {
		return nil
	}
	canonical := canonicalHost(host)
	if slices.ContainsFunc(r.Allow, func(p Pattern) bool {
		return p.matchHost(canonical) && (p.port == 0 || p.port == int(port))
	}) {
		return nil
	}
	return fmt.Errorf("%s:%s: %w", bracketed(host), strconv.Itoa(int(port)), ErrHost)
}

// String is what the rules refuse, in one spelling: equal for rules that are.
func (r Rules) String() string {
	var all []string
	for _, p := range r.Allow {
		all = append(all, p.String())
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// String is the addresses, in one spelling: equal for those that allow the same.
func (a Addresses) String() string {
	var all []string
	for _, prefix := range a.allowed {
		all = append(all, prefix.String())
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}
