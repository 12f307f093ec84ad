package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// aside is the group that the root's processes are moved to. In v2 a group with
// processes hands no controllers on, unless it is the host's own root: what a
// container sees as the root is none, and has the container's processes.
const aside = "liken-cluster-aside"

// handOn lets the children of a v2 group use its controllers. The kubelet wants in
// its group what it uses and the root has; the others only serve those who look.
func handOn(dir string) error {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("list the controllers of a control group: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0)
		if err == nil || !slices.Contains(append(used(), "hugetlb"), controller) {
			continue
		}
		if errors.Is(err, syscall.EBUSY) {
			return fmt.Errorf("%s has processes, so its children get no controllers; start a container with --cgroupns=host: %w", dir, err)
		}
		return fmt.Errorf("hand on the controller %s below %s: %w", controller, dir, err)
	}
	return nil
}

// makeRoom moves the processes of a container's root into a group below it.
func makeRoom(root string) error {
	group := filepath.Join(root, aside)
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a control group: %w", err)
	}
	return moveAll(root, group)
}

// GiveBack undoes what Enter had to do to a container's root, once all groups are
// removed. Where somebody else has come to use the controllers, it stays.
func (t Tree) GiveBack() error {
	for _, root := range t.hierarchies {
		group := filepath.Join(root, aside)
		if _, err := os.Stat(group); !t.unified || err != nil {
			continue
		}
		handed, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
		if err != nil {
			return fmt.Errorf("list what a control group hands on: %w", err)
		}
		for controller := range strings.FieldsSeq(string(handed)) {
			err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("-"+controller), 0)
			if errors.Is(err, syscall.EBUSY) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("take the controller %s back: %w", controller, err)
			}
		}
		if err := moveAll(group, root); err != nil {
			return err
		}
		if err := remove(group); err != nil {
			return err
		}
	}
	return nil
}

// moveAll moves every process from one group to another: again, while those that
// are not moved yet start more.
func moveAll(from, to string) error {
	for range 100 {
		text, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
		if err != nil {
			return fmt.Errorf("list the processes of a control group: %w", err)
		}
		// 0 is one of another process namespace, and would stand for this process.
		pids := slices.DeleteFunc(strings.Fields(string(text)), func(pid string) bool { return pid == "0" })
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("move process %s to the control group %s: %w", pid, to, err)
			}
		}
	}
	return fmt.Errorf("move the processes of the control group %s: there are ever more", from)
}
