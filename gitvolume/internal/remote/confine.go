package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// confinement is how a child is to be bound, before it becomes git.
type confinement struct {
	// Parent is the driver's process id: a child that finds another parent was started
	// by one that is dead.
	Parent int
	// Memory is the bytes that each process may allocate.
	Memory int64
	// Idle gives the processor and the disk to everything else first.
	Idle bool
	// SSH tells that ssh may be run.
	SSH bool
}

func (c confinement) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return err.Error() // Numbers always have a text.
	}
	return string(text)
}

// confine binds the process as its first argument says and becomes the program that
// the others name. All of it is for the thread that then runs the program, and what
// the program starts inherits it.
func confine(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("%d arguments, want how to be confined and a program", len(args))
	}
	var c confinement
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return fmt.Errorf("read %q: %w", args[0], err)
	}
	program, err := exec.LookPath(args[1])
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	runtime.LockOSThread()
	if err := endWithParent(c.Parent); err != nil {
		return err
	}
	if err := c.limit(); err != nil {
		return err
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	if c.SSH && os.Geteuid() == 0 {
		if err := keepGroups(); err != nil {
			return err
		}
	}
	return fmt.Errorf("become %q: %w", program, syscall.Exec(program, args[1:], os.Environ()))
}

// endWithParent has the kernel kill this process when its parent dies, whatever it
// does then; execve keeps that.
func endWithParent(parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the parent: %w", err)
	}
	if os.Getppid() != parent {
		return fmt.Errorf("the parent is process %d and not %d, which has ended", os.Getppid(), parent)
	}
	return nil
}

func (c confinement) limit() error {
	memory := uint64(c.Memory)
	for _, limit := range []struct {
		name     string
		resource int
		value    uint64
	}{
		// What is mapped from packs is not counted: the kernel can take it back.
		{"memory", unix.RLIMIT_DATA, memory},
		// A core would hold what the process knew, on a disk.
		{"core files", unix.RLIMIT_CORE, 0},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.value, Max: limit.value}); err != nil {
			return fmt.Errorf("limit %s to %d: %w", limit.name, limit.value, err)
		}
	}
	if !c.Idle {
		return nil
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 19); err != nil {
		return fmt.Errorf("lower the priority: %w", err)
	}
	const idle, thisProcess = 3 << 13, 1 // IOPRIO_CLASS_IDLE, IOPRIO_WHO_PROCESS
	// Best effort: a kernel without priorities for the disk has nothing to lower.
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, thisProcess, 0, idle)
	return nil
}

// dropPrivileges gives up every capability for good. Root stays the owner of its own
// files and nothing more.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("give up ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	// Without it there is nothing to be had from the bounding set: no program gives a
	// capability to a process that may get no new privileges.
	if held[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		for capability := uintptr(0); capability <= 63; capability++ {
			err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
			if errors.Is(err, unix.EINVAL) { // The kernel knows no further ones.
				break
			}
			if err != nil {
				return fmt.Errorf("drop capability %d: %w", capability, err)
			}
		}
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("give up the capabilities: %w", err)
	}
	return nil
}
