package component

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"liken.sh/hack/cluster/layout"
)

// system are the files below /etc that any program may look for.
func system(c layout.Cluster, machine string) Files {
	var hosts strings.Builder
	hosts.WriteString("127.0.0.1 localhost\n")
	for _, name := range c.Machines() {
		fmt.Fprintf(&hosts, "%s %s\n", c.Address(name), name)
	}
	id := sha256.Sum256([]byte("liken-cluster/" + machine))
	return Files{
		"/etc/hosts":    []byte(hosts.String()),
		"/etc/hostname": []byte(machine + "\n"),
		// Pods inherit it. There is no name server to find, and a host's would not
		// be reachable.
		"/etc/resolv.conf": []byte("options ndots:1\n"),
		"/etc/passwd":      []byte("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"),
		"/etc/group":       []byte("root:x:0:\nnogroup:x:65534:\n"),
		// The kubelet tells machines apart by it.
		"/etc/machine-id": fmt.Appendf(nil, "%x\n", id[:16]),
	}
}
