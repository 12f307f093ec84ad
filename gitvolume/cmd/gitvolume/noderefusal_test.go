package main

import (
	"net/netip"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/store"
)

// What cannot work says in one line which flag is wrong and what would be right, and ends
// with a code of its own.
func TestNodeRefusals(t *testing.T) {
	for name, row := range map[string]struct {
		flags string
		want  []string
	}{
		"an unknown flag":               {"--node n", []string{": --node; ", "gitvolume node --help"}},
		"a flag without value":          {"--node-id", []string{": --node-id; ", "gitvolume node --help"}},
		"a stray word":                  {"--node-id n serve", []string{`"serve"`, "takes flags only"}},
		"no node":                       {"", []string{"--node-id is missing"}},
		"a relative store":              {"--node-id n --store s", []string{"--store", "not absolute"}},
		"standalone in a cluster":       {"--node-id n --standalone --kubeconfig k", []string{"--standalone and --kubeconfig"}},
		"no kubelet":                    {"--node-id n --kubelet-dir /nonexistent", []string{"--kubelet-dir"}},
		"scans without end":             {"--node-id n --scan-every 0s", []string{"--scan-every", "5m"}},
		"a time without unit":           {"--node-id n --scan-every 5", []string{`"5"`, "--scan-every: ", "give a time such as 5m"}},
		"demands without pause":         {"--node-id n --demand-min-interval 0s", []string{"--demand-min-interval", "10s"}},
		"fetches without time":          {"--node-id n --fetch-timeout -1s", []string{"--fetch-timeout", "1h"}},
		"a push of the past":            {"--node-id n --stop-push-timeout -1s", []string{"--stop-push-timeout", "30s"}},
		"a trash of the past":           {"--node-id n --trash-keep -1h", []string{"--trash-keep", "24h"}},
		"no part of a disk":             {"--node-id n --min-free 5x", []string{`"5x"`, "--min-free: ", "5%,1Gi"}},
		"a pattern that is none":        {"--node-id n --allow-url ftp://h", []string{`"ftp://h"`, "--allow-url: ", "scheme"}},
		"an address that is none":       {"--node-id n --allow-address host", []string{`"host"`, "--allow-address: ", "10.0.0.0/8"}},
		"a second address that is none": {"--node-id n --allow-address 10.0.0.1 --allow-address 10.0.0.1/8", []string{"--allow-address: ", "10.0.0.0/8"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			// A later flag wins over an earlier one. The machine's own store is none of a test's.
			h.start(append([]string{"node", "--kubelet-dir", h.dir, "--store", h.path("store")}, strings.Fields(row.flags)...)...).refused(row.want...)
		})
	}
}

func TestNodeHelpAndVersion(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for arguments, want := range map[string]string{
		"node --help": "Usage: gitvolume node --node-id NAME [flags]", "node -h": "--allow-address", "node --version": "gitvolume ",
	} {
		p := h.start(strings.Fields(arguments)...)
		if code := p.Wait(); code != 0 {
			t.Errorf("%s: exit code %d, want 0", arguments, code)
		}
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("%s says %q, which lacks %q", arguments, p.out.String(), want)
		}
	}
}

func TestFlagsThatAreRepeated(t *testing.T) {
	var o nodeOptions
	err := newNodeFlags(&o).Parse([]string{
		"--allow-url", "a.example", "--allow-url", "b.example", "--allow-address", "127.0.0.1", "--allow-address", "10.0.0.0/8",
	})
	if err != nil || len(o.rules.Allow) != 2 {
		t.Errorf("the patterns are %v, %v", o.rules.Allow, err)
	}
	for address, isAllowed := range map[string]bool{"127.0.0.1": true, "10.1.2.3": true, "127.0.0.2": false} {
		if err := o.addresses.Check(netip.MustParseAddr(address)); (err == nil) != isAllowed {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestTheDefaultOfMinFreeIsTheStores(t *testing.T) {
	read, err := store.ParseFree(defaultMinFree)
	if err != nil || read != store.DefaultFree() {
		t.Errorf("%q is %v, %v, want %v", defaultMinFree, read, err, store.DefaultFree())
	}
}
