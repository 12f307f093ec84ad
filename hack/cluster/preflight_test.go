package main

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOverlap(t *testing.T) {
	cluster := netip.MustParsePrefix("10.213.0.0/16")
	address := func(text string) net.Addr {
		ip, network, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		return &net.IPNet{IP: ip, Mask: network.Mask}
	}
	rows := []struct {
		name, address string
		taken         bool
	}{
		{"a VPN inside of it", "10.213.7.1/32", true},
		{"a company's 10/8 around it", "10.1.2.3/8", true},
		{"a neighbour", "10.214.0.1/16", false},
		{"loopback", "127.0.0.1/8", false},
		{"IPv6", "fe80::1/64", false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if got := overlap(cluster, []net.Addr{address(row.address)}); (got != "") != row.taken {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestRouteInto(t *testing.T) {
	const head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	cluster := netip.MustParsePrefix("10.213.0.0/16")
	rows := []struct{ name, line, link, to string }{
		{"the default", "eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n", "", ""},
		{"a VPN's half of the world", "tun0\t00000000\t0100080A\t0003\t0\t0\t0\t00000080\t0\t0\t0\n", "", ""},
		{"a company's 10/8", "tun0\t0000000A\t0100080A\t0003\t0\t0\t0\t000000FF\t0\t0\t0\n", "tun0", "10.0.0.0/8"},
		{"a host inside", "tun0\t0207D50A\t00000000\t0005\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n", "tun0", "10.213.7.2/32"},
		{"the cluster's own", "liken0\t0000D50A\t0100D50A\t0003\t0\t0\t0\t0000FFFF\t0\t0\t0\n", "", ""},
		{"a neighbour", "eth0\t0000D60A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n", "", ""},
		{"not a table", "garbage\n\tx\ty\n", "", ""},
		{"not numbers", "eth0\tX\t0\t0\t0\t0\t0\tY\t0\t0\t0\n", "", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			link, to := routeInto(cluster, strings.NewReader(head+row.line))
			if link != row.link || to != row.to {
				t.Errorf("got %q to %q, want %q to %q", link, to, row.link, row.to)
			}
		})
	}
}

// Two directories of one disk share what it has.
func TestEnough(t *testing.T) {
	disk := func(dir string) (device, bytes uint64, err error) {
		switch dir {
		case "/a", "/b":
			return 1, 100 * mebibyte, nil
		case "/c":
			return 2, 50 * mebibyte, nil
		}
		return 0, 0, errors.New("stale file handle")
	}
	rows := []struct {
		name  string
		needs []need
		want  string
	}{
		{"room for each on its disk", []need{{"/a", 100 * mebibyte, "to run", "A"}, {"/c", 50 * mebibyte, "to build", "C"}}, ""},
		{"room for each but not for both", []need{{"/a", 60 * mebibyte, "to run", "A"}, {"/b", 41 * mebibyte, "to build", "B"}},
			"too little disk space: 100 MiB left, want 101 MiB: 60 MiB in /a to run (A moves it), 41 MiB in /b to build (B moves it)"},
		{"none, even for the first", []need{{"/a", 101 * mebibyte, "to run", "A"}, {"/c", 1 * mebibyte, "to keep", "C"}, {"/b", 1 * mebibyte, "to build", "B"}},
			"100 MiB left, want 102 MiB: 101 MiB in /a to run (A moves it), 1 MiB in /b to build (B moves it)"},
		{"none", []need{{"/c", 51 * mebibyte, "to run", "C"}}, "too little disk space: 50 MiB left, want 51 MiB: 51 MiB in /c to run (C moves it)"},
		{"a disk that does not answer", []need{{"/d", 1, "to run", "D"}}, "stale file handle"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := enough(row.needs, disk)
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestAvailableLooksUpwards(t *testing.T) {
	dir := t.TempDir()
	device, bytes, err := available(dir)
	if err != nil || bytes == 0 {
		t.Fatalf("%d bytes, %v", bytes, err)
	}
	if below, _, err := available(filepath.Join(dir, "not", "yet")); err != nil || below != device {
		t.Errorf("device %d, %v; want %d", below, err, device)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := available(filepath.Join(dir, "file", "below")); err == nil {
		t.Error("a directory below a file has space")
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := havePrograms([]string{"runc", "/nonexistent/bridge", "/bin/sh"})
	if err == nil || !strings.Contains(err.Error(), "missing: runc, /nonexistent/bridge;") {
		t.Errorf("got %v", err)
	}
}

func TestMayMakeMachines(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	count := func() (there int) {
		t.Helper()
		mounts, err := mountsBelow("/tmp")
		if err != nil {
			t.Fatal(err)
		}
		for _, point := range mounts {
			if point == "/tmp" { // others may mount below it meanwhile
				there++
			}
		}
		return there
	}
	before := count()
	if err := mayMakeMachines(); err != nil {
		t.Fatal(err)
	}
	if after := count(); after != before {
		t.Errorf("%d mounts at /tmp, before %d", after, before)
	}
	t.Setenv("PATH", "/nonexistent")
	if err := mayMakeMachines(); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("where it cannot be tried: %v", err)
	}
}
