package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Tests use directories in place of hierarchies: the files that the kernel makes
// are written by hand.
func hierarchy(t *testing.T, root, name string, files ...string) {
	t.Helper()
	dir := filepath.Join(root, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Run("one hierarchy", func(t *testing.T) {
		root := unified(t, "cpuset cpu io memory hugetlb pids rdma misc")
		tree, err := Find(root)
		if err != nil || !tree.unified || !slices.Equal(tree.hierarchies, []string{root}) {
			t.Fatalf("got %+v, %v", tree, err)
		}
	})
	t.Run("one per controller, with a second name", func(t *testing.T) {
		root := t.TempDir()
		for _, name := range []string{"cpu,cpuacct", "cpuset", "memory", "pids", "devices", "systemd"} {
			hierarchy(t, root, name, "cgroup.procs")
		}
		if err := os.Symlink("cpu,cpuacct", filepath.Join(root, "cpu")); err != nil {
			t.Fatal(err)
		}
		tree, err := Find(root)
		if err != nil || tree.unified || len(tree.hierarchies) != 6 {
			t.Fatalf("got %+v, %v", tree, err)
		}
	})
}

func TestFindNamesWhatIsMissing(t *testing.T) {
	separate := t.TempDir()
	hierarchy(t, separate, "cpu", "cgroup.procs")
	rows := []struct{ name, root, missing string }{
		{"separate, one alone", separate, "cpuset, memory, pids, cpuacct, devices"},
		{"one hierarchy, not all handed to this container", unified(t, "memory pids"), "cpu, cpuset"},
		{"one hierarchy, others taken by separate ones", unified(t, "hugetlb"), "cpu, cpuset, memory, pids"},
		{"not mounted", t.TempDir(), "cpu, cpuset, memory, pids, cpuacct, devices"},
		{"not there", "/nonexistent", "cpu, cpuset, memory, pids, cpuacct, devices"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := Find(row.root)
			if err == nil || !strings.Contains(err.Error(), "for "+row.missing+" below") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want one line that names %s", err, row.missing)
			}
		})
	}
}

// unified is a directory in place of a v2 root.
func unified(t *testing.T, controllers string) string {
	t.Helper()
	root := t.TempDir()
	hierarchy(t, root, ".", "cgroup.procs")
	if err := os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte(controllers+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestMakeHandsProcessorsOn(t *testing.T) {
	root := t.TempDir()
	hierarchy(t, root, ".", "cpuset.mems")
	if err := os.WriteFile(filepath.Join(root, "cpuset.cpus"), []byte("0-1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (Tree{hierarchies: []string{root}}).make(root, "/liken-cluster/node-1"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "liken-cluster/node-1/cpuset.cpus"))
	if err != nil || string(got) != "0-1\n" {
		t.Fatalf("the group has processors %q, %v", got, err)
	}
}

func TestRemove(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"liken-cluster/node-1/kubepods/pod1", "liken-cluster/node-1/machine", "other"} {
		hierarchy(t, root, dir)
	}
	tree := Tree{hierarchies: []string{root}}
	for _, time := range []string{"first", "second"} {
		if err := tree.Remove("/liken-cluster"); err != nil {
			t.Fatalf("the %s time: %v", time, err)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 1 || entries[0].Name() != "other" {
		t.Fatalf("left over: %v, %v; want other alone", entries, err)
	}
}
