package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// dirVariable carries the temporary directory to the process inside the
// namespace, and says that it is inside.
const dirVariable = "LIKEN_DEMO_DIR"

func insideNamespace() (dir string, inside bool) { return os.LookupEnv(dirVariable) }

// isolate keeps what the stories mount from reaching the machine: a new mount
// namespace is at first a peer of the one it was copied from.
func isolate() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts of the new namespace private: %w", err)
	}
	return nil
}

// runInNamespace runs this command again in a mount namespace of its own and
// returns its exit code.
func runInNamespace(ctx context.Context, dir string) (int, error) {
	// Pdeathsig follows the thread that started the child, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	child := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	child.Cancel = func() error { return child.Process.Signal(unix.SIGTERM) }
	child.Env = append(os.Environ(), dirVariable+"="+dir)
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if os.Geteuid() != 0 {
		child.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		child.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		child.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := child.Start(); err != nil {
		return 1, fmt.Errorf("make a mount namespace (run as root, or allow user namespaces): %w", err)
	}
	err := child.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.Exited() {
		return ended.ExitCode(), nil // it has said why itself
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
