// Package cgroup makes the control groups that a machine of the cluster lives in,
// and removes them with all that was made below. It knows both layouts: one
// hierarchy for everything (v2), and one per controller (v1). It must never touch
// a group that is not below the one it is given.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Root is where hierarchies are mounted.
const Root = "/sys/fs/cgroup"

// own is the group below a machine's that its own processes are in. In v2 a group
// that has children must have no processes.
const own = "machine"

// Tree is the set of hierarchies of this host.
type Tree struct {
	hierarchies []string // directories
	unified     bool
}

// Find lists the hierarchies below root. It fails where a controller is missing
// without which no kubelet starts.
func Find(root string) (Tree, error) {
	tree := Tree{}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	var missing []string
	if err == nil {
		tree = Tree{hierarchies: []string{root}, unified: true}
		missing = without(used(), strings.Fields(string(controllers)))
	} else {
		var named []string
		if tree.hierarchies, named, err = separate(root); err != nil {
			return Tree{}, err
		}
		missing = without(append(used(), "cpuacct", "devices"), named)
	}
	if len(missing) > 0 {
		return Tree{}, fmt.Errorf("no control groups for %s below %s, which the kubelet needs; a container needs --privileged", strings.Join(missing, ", "), root)
	}
	return tree, nil
}

// used are the controllers that the kubelet and runc cannot do without.
func used() []string { return []string{"cpu", "cpuset", "memory", "pids"} }

func without(all, some []string) []string {
	return slices.DeleteFunc(all, func(one string) bool { return slices.Contains(some, one) })
}

// separate are the hierarchies of v1 and the controllers they have.
func separate(root string) (hierarchies, controllers []string, err error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("list control group hierarchies: %w", err)
	}
	for _, entry := range entries {
		// Two names of one hierarchy are symlinks to it: cpu -> cpu,cpuacct.
		if !entry.IsDir() {
			continue
		}
		dir := filepath.Join(root, entry.Name())
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err == nil {
			hierarchies = append(hierarchies, dir)
			controllers = append(controllers, strings.Split(entry.Name(), ",")...)
		}
	}
	return hierarchies, controllers, nil
}

// Writable fails where no group can be made.
func (t Tree) Writable() error {
	for _, root := range t.hierarchies {
		if err := unix.Access(root, unix.W_OK); err != nil {
			return fmt.Errorf("no control group can be made in %s: %w; a container needs --privileged", root, err)
		}
	}
	return nil
}

// Enter makes the group, a path from the hierarchies' roots, in each of them, and
// moves the process into a group below it.
func (t Tree) Enter(group string, pid int) error {
	for _, root := range t.hierarchies {
		if err := t.make(root, filepath.Join(group, own)); err != nil {
			return err
		}
		procs := filepath.Join(root, group, own, "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("move process %d to its control group: %w", pid, err)
		}
	}
	return nil
}

// make creates a group level by level, since each has to hand on to the next what
// it has.
func (t Tree) make(root, group string) error {
	dir := root
	for part := range strings.SplitSeq(strings.Trim(group, "/"), "/") {
		parent := dir
		dir = filepath.Join(dir, part)
		if t.unified {
			err := handOn(parent)
			if errors.Is(err, syscall.EBUSY) && parent == root {
				err = errors.Join(makeRoom(root), handOn(parent))
			}
			if err != nil {
				return err
			}
		}
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make a control group: %w", err)
		}
		// A new group of the v1 cpuset controller has no processors and no memory,
		// and takes no process before it does.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			if t.unified {
				break
			}
			if err := inherit(parent, dir, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func inherit(parent, dir, file string) error {
	value, err := os.ReadFile(filepath.Join(parent, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what a control group hands on: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, file), value, 0); err != nil {
		return fmt.Errorf("hand %s on to %s: %w", file, dir, err)
	}
	return nil
}

// Remove removes the group and all below it, in each hierarchy. The processes in it
// must be dead; what of them is still being taken down is waited for.
func (t Tree) Remove(group string) error {
	var failed error
	for _, root := range t.hierarchies {
		failed = errors.Join(failed, remove(filepath.Join(root, group)))
	}
	return failed
}

func remove(dir string) error {
	var groups []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			groups = append(groups, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("list control groups: %w", err)
	}
	slices.Reverse(groups) // children come after their parent
	for _, group := range groups {
		deadline := time.Now().Add(10 * time.Second)
		for {
			err := syscall.Rmdir(group)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
				return fmt.Errorf("remove the control group %s: %w", group, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}
