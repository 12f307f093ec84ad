package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// containerRoot is a real v2 group with controllers and a process, as a container
// has it for its root. The kernel may have given all controllers to v1.
func containerRoot(t *testing.T) (root string, process int) {
	t.Helper()
	mountns.Require(t)
	if os.Geteuid() != 0 {
		t.Skip("control groups need root")
	}
	mount := t.TempDir()
	if err := unix.Mount("cgroup2", mount, "cgroup2", 0, ""); err != nil {
		t.Skip("this kernel or container has no control groups v2: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, 0); err != nil {
			t.Error(err)
		}
	})
	borrowController(t, mount)
	root = filepath.Join(mount, "liken-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(root); err != nil {
			t.Error(err)
		}
	})
	sleep := exec.Command("sleep", "600")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleep.Process.Kill()
		_ = sleep.Wait()
	})
	if err := os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(sleep.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	return root, sleep.Process.Pid
}

// borrowController has the root hand on a controller that the kubelet uses.
func borrowController(t *testing.T, mount string) {
	t.Helper()
	control := filepath.Join(mount, "cgroup.subtree_control")
	if len(fields(t, control)) > 0 {
		return
	}
	available := fields(t, filepath.Join(mount, "cgroup.controllers"))
	i := slices.IndexFunc(available, func(c string) bool { return slices.Contains(append(used(), "hugetlb"), c) })
	if i < 0 {
		t.Skip("no controller is left to v2, only ", available)
	}
	if err := os.WriteFile(control, []byte("+"+available[i]), 0); err != nil {
		t.Skip("the root hands nothing on: ", err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(control, []byte("-"+available[i]), 0); err != nil {
			t.Error(err)
		}
	})
}

func fields(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

func TestContainersRootGetsRoom(t *testing.T) {
	root, process := containerRoot(t)
	tree := Tree{hierarchies: []string{root}, unified: true}
	if err := tree.GiveBack(); err != nil {
		t.Fatalf("before anything was taken: %v", err)
	}
	machine := exec.Command("sleep", "600")
	if err := machine.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // as two machines do
		if err := tree.Enter("/cluster/node", machine.Process.Pid); err != nil {
			t.Fatal(err)
		}
	}
	in := func(group string, pid int) bool {
		return slices.Contains(fields(t, filepath.Join(root, group, "cgroup.procs")), strconv.Itoa(pid))
	}
	if !in("cluster/node/machine", machine.Process.Pid) || !in(aside, process) {
		t.Error("the processes are not where they belong")
	}
	// What the kubelet compares at its start.
	has, wants := fields(t, filepath.Join(root, "cluster/node/cgroup.controllers")), fields(t, filepath.Join(root, "cgroup.controllers"))
	if !slices.Equal(has, wants) || len(wants) == 0 {
		t.Errorf("the node's group has the controllers %q, the root %q", has, wants)
	}
	_ = machine.Process.Kill()
	_ = machine.Wait()
	if err := tree.Remove("/cluster"); err != nil {
		t.Fatal(err)
	}
	if err := tree.GiveBack(); err != nil {
		t.Fatal(err)
	}
	if !in(".", process) || len(fields(t, filepath.Join(root, "cgroup.subtree_control"))) > 0 {
		t.Error("the root is not as it was")
	}
	if _, err := os.Stat(filepath.Join(root, aside)); err == nil {
		t.Error("a group is left over")
	}
}

func TestGiveBackLeavesWhatOthersUse(t *testing.T) {
	root, process := containerRoot(t)
	tree := Tree{hierarchies: []string{root}, unified: true}
	if err := tree.make(root, "/other/part"); err != nil {
		t.Fatal(err)
	}
	if err := tree.GiveBack(); err != nil {
		t.Fatal(err)
	}
	if pids := fields(t, filepath.Join(root, aside, "cgroup.procs")); !slices.Contains(pids, strconv.Itoa(process)) {
		t.Errorf("aside are the processes %q, want %d among them", pids, process)
	}
}
