package main

import (
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
	if _, err := choose(all, []string{"pernod"}); err == nil || !strings.Contains(err.Error(), `"pernod"`) {
		t.Errorf("a name nobody has: got %v", err)
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
