package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"liken.sh/hack/cluster/machine"
)

// preflight finds what would make a start fail half-way, and says it in one line.
func (p *program) preflight() error {
	programs := []string{"go", "ip", "nsenter", "runc", "mount", "/usr/lib/cni/bridge", "/usr/lib/cni/host-local", "/bin/busybox"}
	if err := havePrograms(programs); err != nil {
		return err
	}
	if err := p.groups.Writable(); err != nil {
		return err
	}
	if err := mayMakeMachines(); err != nil {
		return err
	}
	if err := p.haveSpace(); err != nil {
		return err
	}
	return p.haveNetwork()
}

// havePrograms takes names and paths.
func havePrograms(programs []string) error {
	var missing []string
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, program)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing: %s; hack/setup cluster installs them", strings.Join(missing, ", "))
	}
	return nil
}

// mayMakeMachines tries what a machine begins with. Being root is not enough in a
// container.
func mayMakeMachines() error {
	try := exec.Command("mount", "-t", "tmpfs", "try", "/tmp")
	try.SysProcAttr = &syscall.SysProcAttr{Cloneflags: machine.Namespaces}
	// The mount must not show on the host.
	try.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	output, err := try.CombinedOutput()
	if err == nil {
		return nil
	}
	if said := bytes.TrimSpace(output); len(said) > 0 {
		err = errors.New(string(said))
	}
	return fmt.Errorf("no namespaces with mounts of their own can be made: %w; a container needs --privileged", err)
}

// snapshotter is how containerd keeps images there: the kernel refuses an overlay
// on top of another, which is what a container's disk is.
func snapshotter(dir string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "", fmt.Errorf("ask what file system %s is on: %w", dir, err)
	}
	if stat.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native", nil
	}
	return "overlayfs", nil
}
