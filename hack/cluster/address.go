package main

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"liken.sh/hack/cluster/layout"
)

// networkOf is the network that the cluster was started with, which its certificates
// name, or else the one it is to be started with.
func networkOf(cluster layout.Cluster) (netip.Prefix, error) {
	content, err := os.ReadFile(cluster.NetworkFile())
	if errors.Is(err, fs.ErrNotExist) {
		return cluster.Network, nil
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("read the network that the cluster was started with: %w", err)
	}
	network, err := layout.Network(strings.TrimSpace(string(content)))
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("read the network that the cluster was started with: %s has %q: %w", cluster.NetworkFile(), content, err)
	}
	return network, nil
}

// keepsNetwork fails where the environment asks for another network than the cluster
// has.
func (p *program) keepsNetwork() error {
	if !p.asked.IsValid() || p.asked == p.cluster.Network {
		return nil
	}
	return fmt.Errorf("%s is %s, but the cluster in %s was started with %s: unset it, or make cluster-down first, which deletes that cluster",
		layout.NetworkVariable, p.asked, p.cluster.State, p.cluster.Network)
}

// haveNetwork looks for another owner of the addresses. One that is there already
// would be cut off by the cluster's route.
func (p *program) haveNetwork() error {
	links, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("list network interfaces: %w", err)
	}
	for _, link := range links {
		addresses, err := link.Addrs()
		if err != nil {
			return fmt.Errorf("list the addresses of %s: %w", link.Name, err)
		}
		if link.Name == layout.HostLink {
			continue
		}
		if taken := overlap(p.cluster.Network, addresses); taken != "" {
			return p.taken(link.Name, "the address", taken)
		}
	}
	routes, err := os.Open("/proc/net/route")
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	defer routes.Close()
	if link, to := routeInto(p.cluster.Network, routes); link != "" {
		return p.taken(link, "a route to", to)
	}
	if _, running := p.machine(layout.Control).PID(); running {
		return nil
	}
	return waitForLink()
}

func (p *program) taken(link, what, address string) error {
	return fmt.Errorf("%s has %s %s, inside the cluster's network %s: set %s to another /16, such as 10.99.0.0/16", link, what, address, p.cluster.Network, layout.NetworkVariable)
}

// overlap is the first of the addresses whose network meets the prefix.
func overlap(prefix netip.Prefix, addresses []net.Addr) string {
	for _, address := range addresses {
		other, err := netip.ParsePrefix(address.String())
		if err == nil && prefix.Overlaps(other) {
			return address.String()
		}
	}
	return ""
}

// routeInto is the first route of the kernel's table that meets the prefix, but for
// those to the whole world, which are split in two by some VPNs.
func routeInto(prefix netip.Prefix, table io.Reader) (link, to string) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || fields[0] == layout.HostLink {
			continue
		}
		address, mask := littleEndian(fields[1]), littleEndian(fields[7])
		ones, _ := net.IPMask(mask).Size()
		ip, ok := netip.AddrFromSlice(address)
		if !ok || ones < 2 {
			continue
		}
		if route := netip.PrefixFrom(ip, ones); prefix.Overlaps(route) {
			return fields[0], route.String()
		}
	}
	return "", ""
}

// littleEndian reads four bytes as the kernel writes them on the processors that
// Kubernetes is built for here; nil is what is none.
func littleEndian(text string) []byte {
	bytes, err := hex.DecodeString(text)
	if err != nil || len(bytes) != 4 {
		return nil
	}
	slices.Reverse(bytes)
	return bytes
}
