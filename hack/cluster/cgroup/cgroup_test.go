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
		root := t.TempDir()
		hierarchy(t, root, ".", "cgroup.controllers", "cgroup.procs")
		tree, err := Find(root)
		if err != nil || !tree.unified || !slices.Equal(tree.hierarchies, []string{root}) {
			t.Fatalf("got %+v, %v", tree, err)
		}
	})
	t.Run("one per controller, with a second name", func(t *testing.T) {
		root := t.TempDir()
		for _, name := range []string{"cpu,cpuacct", "memory", "pids", "devices", "systemd"} {
			hierarchy(t, root, name, "cgroup.procs")
		}
		if err := os.Symlink("cpu,cpuacct", filepath.Join(root, "cpu")); err != nil {
			t.Fatal(err)
		}
		tree, err := Find(root)
		if err != nil || tree.unified || len(tree.hierarchies) != 5 {
			t.Fatalf("got %+v, %v", tree, err)
		}
	})
	t.Run("a container without control groups", func(t *testing.T) {
		root := t.TempDir()
		hierarchy(t, root, "cpu", "cgroup.procs")
		_, err := Find(root)
		if err == nil || !strings.Contains(err.Error(), "memory, pids, devices") {
			t.Fatalf("got %v, want the missing controllers named", err)
		}
	})
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
