package layout

import (
	"net/netip"
	"strings"
	"testing"
)

func plan(t *testing.T) Cluster {
	t.Helper()
	c, err := New("/state", "/cache", "10.213.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNewRefuses(t *testing.T) {
	rows := []struct{ name, state, network, want string }{
		{"a network that is too small", "/state", "10.213.0.0/24", `LIKEN_CLUSTER_NETWORK is "10.213.0.0/24": a /24: want an IPv4 /16, such as 10.213.0.0/16`},
		{"an address inside the network", "/state", "10.213.1.0/16", `LIKEN_CLUSTER_NETWORK is "10.213.1.0/16": an address inside a network: want 10.213.0.0/16`},
		{"IPv6", "/state", "fd00::/16", `LIKEN_CLUSTER_NETWORK is "fd00::/16": IPv6: want an IPv4 /16`},
		{"no network", "/state", "10.213", `LIKEN_CLUSTER_NETWORK is "10.213": not an address, a slash`},
		{"a newline", "/state", "10.213.0.0/16\n", `LIKEN_CLUSTER_NETWORK is "10.213.0.0/16\n": not an address`},
		{"loopback", "/state", "127.0.0.0/16", "no machine may have its addresses"},
		{"multicast", "/state", "224.0.0.0/16", "no machine may have its addresses"},
		{"the unspecified address", "/state", "0.0.0.0/16", "no machine may have its addresses"},
		{"state below the working directory", "state", "10.213.0.0/16", `LIKEN_CLUSTER_STATE is "state", a relative path: want an absolute one, such as /srv/liken-cluster`},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := New(row.state, "/cache", row.network)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Fatalf("got %v, want an error with %q", err, row.want)
			}
		})
	}
}

// A cluster is told from another by its state.
func TestStateHasOneName(t *testing.T) {
	c, err := New("/var/lib//state/", "/cache/", "10.213.0.0/16")
	if err != nil || c.State != "/var/lib/state" {
		t.Errorf("got %q, %v", c.State, err)
	}
}

// Two owners of one address would show as a cluster that works now and then.
func TestAddressesDoNotMeet(t *testing.T) {
	c := plan(t)
	owner := map[netip.Addr]string{c.Host(): "host", c.APIService(): "API service"}
	for _, machine := range c.Machines() {
		address := c.Address(machine)
		if other, taken := owner[address]; taken {
			t.Errorf("%s has the address of %s", machine, other)
		}
		owner[address] = machine
		if !c.Network.Contains(address) {
			t.Errorf("%s is at %s, outside %s", machine, address, c.Network)
		}
	}
	ranges := []netip.Prefix{netip.PrefixFrom(c.Address(Control), 24).Masked(), c.Services()}
	for _, node := range c.Nodes() {
		ranges = append(ranges, c.Pods(node))
	}
	for i, a := range ranges {
		for _, b := range ranges[i+1:] {
			if a.Overlaps(b) {
				t.Errorf("%s and %s overlap", a, b)
			}
		}
	}
	if !c.Services().Contains(c.APIService()) {
		t.Errorf("the API service %s is outside %s", c.APIService(), c.Services())
	}
}

// The kernel refuses interface names from 16 bytes on.
func TestInterfaceNamesFit(t *testing.T) {
	for _, name := range append(plan(t).Machines(), HostLink, bridge, uplink) {
		if len(name) > 15 {
			t.Errorf("%q is too long for an interface", name)
		}
	}
}

func TestControlRoutesEveryNodesPods(t *testing.T) {
	c := plan(t)
	for _, node := range c.Nodes() {
		want := "ip route add " + c.Pods(node).String() + " via " + c.Address(node).String()
		found := false
		for _, command := range c.OnBoot(Control) {
			found = found || strings.Join(command, " ") == want
		}
		if !found {
			t.Errorf("control does not run %q", want)
		}
	}
}

// Whoever knows the bridge's address must not lose it with a node.
func TestBridgeKeepsItsAddress(t *testing.T) {
	for _, command := range plan(t).OnBoot(Control) {
		line := strings.Join(command, " ")
		if strings.Contains(line, "type bridge") && !strings.Contains(line, " address ") {
			t.Errorf("%q leaves the address to what is plugged in", line)
		}
	}
}
