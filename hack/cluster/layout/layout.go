// Package layout says what the local cluster is made of, where each part keeps
// its files and which addresses it has. It only computes: it must never touch
// the disk or the network.
package layout

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
)

// The machines of the cluster. A node is named like its machine.
const (
	Control = "control"
	Node1   = "node-1"
	Node2   = "node-2"
)

// Variables of the environment that move a cluster.
const (
	StateVariable   = "LIKEN_CLUSTER_STATE"
	NetworkVariable = "LIKEN_CLUSTER_NETWORK"
)

// Cluster is the whole plan: everything else is derived from these three.
type Cluster struct {
	// State is the directory that holds the machines' disks, the certificates
	// and the kubeconfig. It goes when the cluster is taken down.
	State string
	// Cache is the directory of what is built once: binaries and images.
	Cache string
	// Network is the /16 all addresses are taken from.
	Network netip.Prefix
}

// New checks what a person may have set, and says what would be right.
func New(state, cache, network string) (Cluster, error) {
	prefix, err := Network(network)
	if err != nil {
		return Cluster{}, fmt.Errorf("%s is %q: %w", NetworkVariable, network, err)
	}
	if !filepath.IsAbs(state) {
		return Cluster{}, fmt.Errorf("%s is %q, a relative path: want an absolute one, such as /srv/liken-cluster", StateVariable, state)
	}
	if !filepath.IsAbs(cache) {
		return Cluster{}, fmt.Errorf("the cache is %q, a relative path: want an absolute one", cache)
	}
	// Clean, since the state is also known by the command lines of machines.
	return Cluster{State: filepath.Clean(state), Cache: filepath.Clean(cache), Network: prefix}, nil
}

// Network reads a network of which every address can be derived.
func Network(text string) (netip.Prefix, error) {
	const want = "want an IPv4 /16, such as 10.213.0.0/16"
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		return netip.Prefix{}, errors.New("not an address, a slash and the length of a prefix: " + want)
	case !prefix.Addr().Is4():
		return netip.Prefix{}, errors.New("IPv6: " + want)
	case prefix.Bits() != 16:
		return netip.Prefix{}, fmt.Errorf("a /%d: %s", prefix.Bits(), want)
	case prefix.Masked() != prefix:
		return netip.Prefix{}, fmt.Errorf("an address inside a network: want %s", prefix.Masked())
	case !prefix.Addr().IsGlobalUnicast():
		return netip.Prefix{}, errors.New("no machine may have its addresses: " + want)
	}
	return prefix, nil
}

// Nodes are the machines that run pods.
func (Cluster) Nodes() []string { return []string{Node1, Node2} }

// Machines are all machines, in the order they start: the nodes are plugged into
// a bridge that the control machine has.
func (c Cluster) Machines() []string { return append([]string{Control}, c.Nodes()...) }

// at is an address by its last two bytes.
func (c Cluster) at(third, fourth byte) netip.Addr {
	b := c.Network.Addr().As4()
	return netip.AddrFrom4([4]byte{b[0], b[1], third, fourth})
}

// Address is the machine's own address on the bridge.
func (c Cluster) Address(machine string) netip.Addr {
	switch machine {
	case Node1:
		return c.at(0, 11)
	case Node2:
		return c.at(0, 12)
	}
	return c.at(0, 1)
}

// Host is the address that the host itself has on the bridge.
func (c Cluster) Host() netip.Addr { return c.at(0, 254) }

// Pods is the network that a node gives its pods addresses from.
func (c Cluster) Pods(node string) netip.Prefix {
	return netip.PrefixFrom(c.at(c.Address(node).As4()[3]-10, 0), 24)
}

// Services is the range of cluster IPs. Nothing routes them but the first.
func (c Cluster) Services() netip.Prefix { return netip.PrefixFrom(c.at(128, 0), 20) }

// APIService is the cluster IP of the Service kubernetes, which pods find in
// KUBERNETES_SERVICE_HOST. The control machine has it as an address of its own,
// so that no kube-proxy is needed to reach it.
func (c Cluster) APIService() netip.Addr { return c.at(128, 1) }

// Server is the API server's address for clients.
func (c Cluster) Server() string { return fmt.Sprintf("https://%s:443", c.Address(Control)) }

// Dir is where all files of one machine are.
func (c Cluster) Dir(machine string) string { return filepath.Join(c.State, machine) }

// Root is the machine's disk: a directory on the host that the machine sees as /.
func (c Cluster) Root(machine string) string { return filepath.Join(c.Dir(machine), "root") }

// Kubeconfig is the administrator's kubeconfig.
func (c Cluster) Kubeconfig() string { return filepath.Join(c.State, "kubeconfig") }

// NetworkFile holds the network that the cluster was started with.
func (c Cluster) NetworkFile() string { return filepath.Join(c.State, "network") }

// Images is the directory of image archives.
func (c Cluster) Images() string { return filepath.Join(c.Cache, "images") }

// Cgroup is the parent of all control groups of one machine, from the root of the
// hierarchy.
func (c Cluster) Cgroup(machine string) string { return "/" + CgroupParent + "/" + machine }

// CgroupParent holds the control groups of all machines.
const CgroupParent = "liken-cluster"
