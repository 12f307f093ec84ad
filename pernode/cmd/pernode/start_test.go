package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/csicommon/csitest/process"
)

// A start that cannot work says in one line what is wrong, and ends with a code
// of its own.
func TestBadStart(t *testing.T) {
	mountns.Require(t)
	for _, row := range []struct {
		name  string
		flags func(t *testing.T, n *node) []string
		want  []string
	}{
		{"unknown flag", flags("--nod-id=x"), []string{"-nod-id", "--help"}},
		{"flag without value", flags("--node-id"), []string{"node-id"}},
		{"stray argument", flags("serve"), []string{`"serve"`, "--help"}},
		{"no node id", flags("--node-id="), []string{"--node-id"}},
		{"sweep every 0", flags("--sweep-every=0s"), []string{"--sweep-every"}},
		{"sweep every without unit", flags("--sweep-every=10"), []string{"sweep-every", `"10"`}},
		{"standalone with a kubeconfig", flags("--kubeconfig=/k"), []string{"--standalone", "--kubeconfig"}},
		{"standalone with adoption", flags("--adopt-store"), []string{"--standalone", "--adopt-store"}},
		{"kubelet directory missing", flags("--kubelet-dir=/nonexistent/kubelet"), []string{"--kubelet-dir", `"/nonexistent/kubelet"`}},
		{"kubelet directory is a file", flags("--kubelet-dir=/proc/self/status"), []string{"--kubelet-dir", "not a directory"}},
		{"kubelet directory is relative", flags("--kubelet-dir=."), []string{"--kubelet-dir", "not absolute"}},
		{"kubelet directory too long", longKubeletDir, []string{"--kubelet-dir", "107"}},
		{"endpoint too long", flags("--endpoint=unix:///tmp/" + strings.Repeat("e", 120)), []string{"--endpoint", "107"}},
		{"endpoint is no unix socket", flags("--endpoint=tcp://:1"), []string{"--endpoint", "tcp://:1", "unix:///"}},
		{"endpoint in use", endpointInUse, []string{"csi.sock", "another process"}},
		{"endpoint is a file", endpointIsFile, []string{"csi.sock", "not a socket"}},
		{"HTTP port taken", takenPort, []string{"127.0.0.1:", "in use"}},
		{"HTTP address is none", flags("--http=nowhere"), []string{`"nowhere"`}},
		{"OTLP endpoint is none", flags("--otlp-endpoint=collector"), []string{`"collector"`, "host:port"}},
		{"log level unknown", flags("--log-level=loud"), []string{`"loud"`, "debug, info, warn and error"}},
		{"log format unknown", flags("--log-format=xml"), []string{`"xml"`, "json"}},
		{"kubeconfig missing", flags("--standalone=false", "--kubeconfig=/nonexistent/config"), []string{"/nonexistent/config"}},
		{"no cluster around", flags("--standalone=false"), []string{"--kubeconfig", "--standalone"}},
		{"store is a file", storeIsFile, []string{"store", "not a directory"}},
		{"store is relative", flags("--store=store"), []string{`"store"`, "not absolute"}},
		{"store is a foreign directory", foreignStore, []string{"precious", "empty directory"}},
		{"store in use", storeInUse, []string{"another process"}},
		{"store of a newer format", storeWith("format", "2\n"), []string{"format 2"}},
		{"store with a garbage format", storeWith("format", "\x00garbage\n"), []string{`"\x00garbage\n"`}},
		{"store whose disk is not mounted", flags("--require-mount"), []string{"--require-mount", "not a mount point"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			n := newStandaloneNode(t)
			process.Start(t, n.Command(row.flags(t, n)...)).Refused("pernode", row.want...)
		})
	}
}

func flags(more ...string) func(*testing.T, *node) []string {
	return func(*testing.T, *node) []string { return more }
}

func longKubeletDir(t *testing.T, n *node) []string {
	dir := filepath.Join(n.KubeletDir, strings.Repeat("k", 60))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{"--kubelet-dir", dir}
}

func endpointInUse(t *testing.T, n *node) []string {
	socket := filepath.Join(n.KubeletDir, "csi.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return []string{"--endpoint", "unix://" + socket}
}

func endpointIsFile(t *testing.T, n *node) []string {
	file := filepath.Join(n.KubeletDir, "csi.sock")
	writeFile(t, file, "x")
	return []string{"--endpoint", "unix://" + file}
}

func takenPort(t *testing.T, _ *node) []string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return []string{"--http", listener.Addr().String()}
}

func storeIsFile(t *testing.T, n *node) []string {
	writeFile(t, n.Store, "x")
	return nil
}

func foreignStore(t *testing.T, n *node) []string {
	return storeWith("precious", "data")(t, n)
}

func storeInUse(t *testing.T, n *node) []string {
	other := newStandaloneNode(t)
	other.Store = n.Store
	other.Start()
	return nil
}

func storeWith(file, text string) func(*testing.T, *node) []string {
	return func(t *testing.T, n *node) []string {
		if err := os.Mkdir(n.Store, 0o700); err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(n.Store, file), text)
		return nil
	}
}

// A refused store stays as it was.
func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	t.Parallel()
	n := newStandaloneNode(t)
	foreignStore(t, n)
	if err := os.Chmod(n.Store, 0o755); err != nil {
		t.Fatal(err)
	}
	if code := process.Start(t, n.Command()).Wait(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	wantMode(t, n.Store, os.ModeDir|0o755)
	if got := names(t, n.Store); len(got) != 1 {
		t.Errorf("the directory holds %q", got)
	}
}

func TestStoreOnADiskOfItsOwn(t *testing.T) {
	t.Parallel()
	n := newStandaloneNode(t)
	if err := os.Mkdir(n.Store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", n.Store, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mountns.UnmountBelow(t, n.Store) })
	n.Start("--require-mount")
	n.mustPublish("h1", 1)
	n.WantMounts(n.Target("h1", 1), 1)
}

func TestHelpAndVersion(t *testing.T) {
	mountns.Require(t)
	for flag, want := range map[string]string{"--help": "--node-id NAME", "-h": "-sweep-every", "--version": "pernode "} {
		p := process.Start(t, pluginCommand(flag))
		if code := p.Wait(); code != 0 {
			t.Errorf("%s: exit code %d, want 0", flag, code)
		}
		wantWords(t, p.Log.String(), want)
	}
}
