package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/toolset"
)

// preflight finds what would make a start fail half-way, and says it in one line.
func (p *program) preflight() error {
	if err := havePrograms(); err != nil {
		return err
	}
	if err := p.haveSpace(); err != nil {
		return err
	}
	return p.haveNetwork()
}

func havePrograms() error {
	var missing []string
	for _, name := range []string{"go", "ip", "nsenter", "runc", "mount"} {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		}
	}
	for _, file := range []string{"/usr/lib/cni/bridge", "/usr/lib/cni/host-local", "/bin/busybox"} {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, file)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing: %s; hack/setup cluster installs them", strings.Join(missing, ", "))
	}
	return nil
}

const (
	mebibyte = 1 << 20
	// A cold build's sources, compiled packages and programs.
	spaceToBuild = 6000 * mebibyte
	// Two nodes' images and the API server's data.
	spaceToRun = 1500 * mebibyte
)

func (p *program) haveSpace() error {
	builder := toolset.Builder{Modules: p.modules, Cache: p.cluster.Cache}
	for _, set := range toolset.Sets() {
		dir, err := builder.Dir(set)
		if err != nil {
			return err
		}
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			if err := space(p.cluster.Cache, spaceToBuild, "to build Kubernetes"); err != nil {
				return err
			}
			break
		}
	}
	return space(filepath.Dir(p.cluster.State), spaceToRun, "to run")
}

func space(dir string, want uint64, what string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("ask how much space %s has: %w", dir, err)
	}
	if have := stat.Bavail * uint64(stat.Bsize); have < want {
		return fmt.Errorf("too little disk space %s: %s has %d MiB, want %d MiB", what, dir, have/mebibyte, want/mebibyte)
	}
	return nil
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
			return fmt.Errorf("%s has the address %s, inside the cluster's network %s: set LIKEN_CLUSTER_NETWORK to another /16", link.Name, taken, p.cluster.Network)
		}
	}
	if _, running := p.machine(layout.Control).PID(); running {
		return nil
	}
	return waitForLink()
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

// snapshotter is how containerd keeps images there: the kernel refuses an overlay
// on top of another, which is what a container's disk is.
func snapshotter(dir string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "", fmt.Errorf("ask what file system %s is on: %w", dir, err)
	}
	if stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native", nil
	}
	return "overlayfs", nil
}
