package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/hack/cluster/cgroup"
	"liken.sh/hack/cluster/layout"
	"liken.sh/hack/cluster/machine"
)

func TestChoose(t *testing.T) {
	all := []driver{{name: "pernode", version: "devel"}, {name: "other", version: "devel"}}
	chosen, err := choose(all, []string{"pernode=v1.2.3"})
	if err != nil || len(chosen) != 1 || chosen[0].version != "v1.2.3" {
		t.Errorf("got %+v, %v", chosen, err)
	}
	if chosen, err := choose(all, nil); err != nil || len(chosen) != 2 || chosen[0].version != "devel" {
		t.Errorf("none named: got %+v, %v", chosen, err)
	}
	if _, err := choose(all, []string{"pernod"}); err == nil || !strings.Contains(err.Error(), `"pernod" to build: want one of pernode, other`) {
		t.Errorf("a name nobody has: got %v", err)
	}
}

func TestInstalledHowever(t *testing.T) {
	there := []string{"csidriver.storage.k8s.io/git.liken.sh", "csidriver.storage.k8s.io/per-node.liken.sh.example"}
	for name, want := range map[string]bool{"git.liken.sh": true, "per-node.liken.sh": false} {
		if got := (driver{csi: name}).isAmong(there); got != want {
			t.Errorf("%s is among %q: %t", name, there, got)
		}
	}
}

func testCluster(t *testing.T) layout.Cluster {
	t.Helper()
	cluster, err := layout.New(t.TempDir(), t.TempDir(), "10.213.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// Addresses are those of the certificates, whatever the environment says now.
func TestNetworkStays(t *testing.T) {
	cluster := testCluster(t)
	if network, err := networkOf(cluster); err != nil || network != cluster.Network {
		t.Errorf("never started: %v, %v", network, err)
	}
	record := func(text string) {
		if err := os.WriteFile(cluster.NetworkFile(), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	record("10.99.0.0/16\n")
	started, err := networkOf(cluster)
	if err != nil || started.String() != "10.99.0.0/16" {
		t.Fatalf("got %v, %v", started, err)
	}
	p := program{cluster: cluster, asked: cluster.Network}
	p.cluster.Network = started
	err = p.keepsNetwork()
	if want := "LIKEN_CLUSTER_NETWORK is 10.213.0.0/16, but the cluster in " + cluster.State + " was started with 10.99.0.0/16"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("another one is asked for: got %v, want %q", err, want)
	}
	for _, asked := range []netip.Prefix{{}, started} {
		p.asked = asked
		if err := p.keepsNetwork(); err != nil {
			t.Errorf("asked for %v: %v", asked, err)
		}
	}
	record("10.99")
	if _, err := networkOf(cluster); err == nil || !strings.Contains(err.Error(), cluster.NetworkFile()) {
		t.Errorf("a record that is none: %v", err)
	}
}

// What is deleted with the cluster must be the cluster's.
func TestOnlyOwn(t *testing.T) {
	p := program{cluster: testCluster(t)}
	for _, name := range []string{p.cluster.Kubeconfig(), p.cluster.NetworkFile(), p.cluster.Dir(layout.Control), p.cluster.Dir(layout.Node2)} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.onlyOwn(); err != nil {
		t.Errorf("its own files: %v", err)
	}
	if err := os.Mkdir(filepath.Join(p.cluster.State, "Documents"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := p.onlyOwn(); err == nil || !strings.Contains(err.Error(), `"Documents"`) || !strings.Contains(err.Error(), "LIKEN_CLUSTER_STATE") {
		t.Errorf("somebody's home: got %v", err)
	}
}

func TestRestartsAreSaid(t *testing.T) {
	all := testCluster(t).Machines()
	rows := []struct {
		name             string
		missing, running []string
		want             string
	}{
		{"nothing runs", all, nil, ""},
		{"a node is off", []string{layout.Node1}, []string{layout.Control, layout.Node2}, ""},
		{"the interface is gone", all, all, "restarting control, node-1, node-2 with all that runs there: the host's interface liken0 is gone"},
		{"control is off", all, []string{layout.Node2}, "restarting node-2 with all that runs there: control, which connects them, does not run"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			got := restartNotice(row.missing, row.running)
			if (got == "") != (row.want == "") || !strings.HasPrefix(got, row.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// A node that was switched off says Ready until somebody notices.
func TestReadyIsOfThisBoot(t *testing.T) {
	cluster := testCluster(t)
	if err := os.MkdirAll(cluster.Dir(layout.Node1), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cluster.Dir(layout.Node1), "process.json"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	node := machine.New(layout.Node1, cluster, cgroup.Tree{})
	at := func(d time.Duration) string { return node.Booted().Add(d).UTC().Format(time.RFC3339) }
	rows := []struct {
		name, condition, want string
	}{
		{"said before it booted", "True " + at(-time.Minute) + " kubelet is posting ready status", "since it booted"},
		{"said after", "True " + at(time.Minute) + " kubelet is posting ready status", ""},
		{"not ready", "False " + at(time.Minute) + " container runtime network not ready", "container runtime network not ready"},
		{"no condition yet", "", ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			err := ready(row.condition, node)
			if row.condition == "" {
				if err == nil {
					t.Fatal("a node that said nothing is ready")
				}
				return
			}
			if (err == nil) != (row.want == "") || (err != nil && !strings.Contains(err.Error(), row.want)) {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestMountsBelow(t *testing.T) {
	mounts, err := mountsBelow("/proc")
	if err != nil || !slices.Contains(mounts, "/proc") {
		t.Errorf("below /proc: %v, %v", mounts, err)
	}
	if mounts, err := mountsBelow(t.TempDir()); err != nil || len(mounts) > 0 {
		t.Errorf("below an empty directory: %v, %v", mounts, err)
	}
}

func TestNewer(t *testing.T) {
	file, mark := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "mark")
	for _, name := range []string{file, mark} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, long, long); err != nil {
		t.Fatal(err)
	}
	if newer(file, mark) {
		t.Error("an archive from before is loaded again")
	}
	if !newer(mark, file) {
		t.Error("an archive from after is not loaded")
	}
	if !newer(file, mark+"-missing") {
		t.Error("a node that has nothing is given nothing")
	}
}
