package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"liken.sh/hack/cluster/layout"
)

// down leaves nothing but the cache.
func (p *program) down() error {
	entries, err := os.ReadDir(p.cluster.State)
	if err != nil {
		return fmt.Errorf("look for the cluster's state: %w", err)
	}
	if len(entries) == 0 {
		say("no cluster is running")
		return nil
	}
	if err := p.stopAll(); err != nil {
		return err
	}
	if err := p.groups.Remove("/" + layout.CgroupParent); err != nil {
		return err
	}
	if err := p.groups.GiveBack(); err != nil {
		return err
	}
	if err := waitForLink(); err != nil {
		return err
	}
	// What is mounted below would be deleted with it, and no machine mounts there.
	mounts, err := mountsBelow(p.cluster.State)
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("not deleting %s: mounted there, and not by the cluster: %s", p.cluster.State, strings.Join(mounts, ", "))
	}
	if err := p.onlyOwn(); err != nil {
		return err
	}
	if err := os.RemoveAll(p.cluster.State); err != nil {
		return fmt.Errorf("delete the cluster's state: %w", err)
	}
	say("the cluster is stopped and deleted")
	return nil
}

// onlyOwn fails where the state's directory has what no cluster put there: a variable
// that names somebody's home would have down delete it.
func (p *program) onlyOwn() error {
	entries, err := os.ReadDir(p.cluster.State)
	if err != nil {
		return fmt.Errorf("look for the cluster's state: %w", err)
	}
	own := append(p.cluster.Machines(), filepath.Base(p.cluster.Kubeconfig()), filepath.Base(p.cluster.NetworkFile()))
	for _, entry := range entries {
		if !slices.Contains(own, entry.Name()) {
			return fmt.Errorf("%s has %q, which is not the cluster's and would be deleted with it: move that away, or set %s to a directory that only the cluster has",
				p.cluster.State, entry.Name(), layout.StateVariable)
		}
	}
	return nil
}

func (p *program) stopAll() error { return p.stopThese(p.cluster.Machines()) }

// stopThese stops nodes before the machine they are plugged into.
func (p *program) stopThese(names []string) error {
	names = slices.Clone(names)
	slices.Reverse(names)
	var failed error
	for _, name := range names {
		failed = errors.Join(failed, p.machine(name).Stop())
	}
	if slices.Contains(names, layout.Control) {
		failed = errors.Join(failed, waitForLink())
	}
	return failed
}

// waitForLink waits for the host's interface to go. The kernel takes namespaces of
// the network down in the background, after their last process.
func waitForLink() error {
	deadline := time.Now().Add(30 * time.Second)
	for {
		if !hostIsConnected() {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the interface %s is there without a cluster that runs; if nothing else uses it: ip link delete %s", layout.HostLink, layout.HostLink)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// hostIsConnected tells whether the host has its interface.
func hostIsConnected() bool {
	_, err := net.InterfaceByName(layout.HostLink)
	return err == nil
}

// mountsBelow are the mount points at or below the directory in this namespace.
func mountsBelow(dir string) ([]string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("look for mounts: %w", err)
	}
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("look for mounts: %w", err)
	}
	defer file.Close()
	var found []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && (fields[4] == dir || strings.HasPrefix(fields[4], dir+"/")) {
			found = append(found, fields[4])
		}
	}
	return found, lines.Err()
}
