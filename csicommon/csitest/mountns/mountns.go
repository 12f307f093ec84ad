// Package mountns lets tests mount for real: it runs a package's whole test
// binary in a mount namespace of its own, so that nothing a test mounts is seen
// outside or outlives it.
//
// It must never let a test mount in the namespace it was started from: where no
// namespace can be had, Require skips, with the reason.
package mountns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The environment carries what is known about the namespace, because the test
// binary that needs it is another process than the one that made it, and so may
// be the processes that tests start from their own binary.
const (
	stateVariable  = "LIKEN_TEST_MOUNT_NAMESPACE"
	reasonVariable = "LIKEN_TEST_NO_MOUNT_NAMESPACE"
	entered        = "entered"
	// memoryVariable is where a file system in memory is to be.
	memoryVariable = "LIKEN_TEST_IN_MEMORY"
)

// Main stands in for m.Run in a package's TestMain and does not return. It runs
// the tests in a child process with the same arguments, so coverage, -run and
// fuzzing work as ever, and ends with the child's exit code.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a package that has something to put away afterwards: it returns the exit
// code, in the process that was started and in its child.
func Run(m *testing.M) int { return run(m, nil) }

// MainInMemory is Main with the temporary directories of all tests in memory: for a
// package whose tests make a great deal durable, and of which none is about a disk. Where
// no namespace can be had they are where they always are.
func MainInMemory(m *testing.M) {
	if os.Getenv(stateVariable) == entered {
		os.Exit(run(m, nil))
	}
	dir, err := os.MkdirTemp("", "m")
	if err != nil {
		fmt.Fprintf(os.Stderr, "mountns: %v\n", err)
		os.Exit(1)
	}
	code := run(m, []string{"TMPDIR=" + dir, memoryVariable + "=" + dir})
	if err := os.RemoveAll(dir); err != nil { //nolint:forbidigo // What tests left there is theirs.
		fmt.Fprintf(os.Stderr, "mountns: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run runs the tests with more in the environment of those in a namespace.
func run(m *testing.M, more []string) int {
	if os.Getenv(stateVariable) == entered {
		if err := errors.Join(isolate(), inMemory()); err != nil {
			unavailable(err)
		}
		return m.Run()
	}
	code, err := runInNamespace(more)
	if err == nil {
		return code
	}
	unavailable(err)
	return m.Run()
}

// inMemory mounts what MainInMemory asks for. A process that is started from here later is
// not to do it again.
func inMemory() error {
	dir := os.Getenv(memoryVariable)
	if dir == "" {
		return nil
	}
	if err := unix.Mount("none", dir, "tmpfs", 0, "mode=700"); err != nil {
		return fmt.Errorf("mount a file system in memory: %w", err)
	}
	return os.Unsetenv(memoryVariable)
}

// Require skips the test, with the reason, when Main could not make a namespace.
// A package that calls it without Main in its TestMain fails: its tests would
// mount on the machine itself.
func Require(t testing.TB) {
	t.Helper()
	if reason := os.Getenv(reasonVariable); reason != "" {
		t.Skipf("mounting needs a mount namespace of its own: %s", reason)
	}
	if os.Getenv(stateVariable) != entered {
		t.Fatal("mountns.Main is not called from TestMain: this test would mount outside of a namespace of its own")
	}
}

// isolate cuts the new namespace off from the one it was copied from: a shared
// root would carry every mount of a test back to the machine.
func isolate() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts of the new namespace private: %w", err)
	}
	return nil
}

func unavailable(reason error) {
	fmt.Fprintf(os.Stderr, "mountns: tests that mount are skipped: %v\n", reason)
	if err := errors.Join(os.Setenv(reasonVariable, reason.Error()), os.Unsetenv(stateVariable)); err != nil {
		fmt.Fprintf(os.Stderr, "mountns: %v\n", err)
		os.Exit(1)
	}
}

// runInNamespace runs this binary again in the first kind of namespace that can
// be had. The error says why none could; then nothing ran.
func runInNamespace(more []string) (int, error) {
	// Pdeathsig follows the thread that started the child, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var reasons []error
	for _, attributes := range namespaces() {
		child, err := start(attributes, more)
		if err != nil {
			reasons = append(reasons, err)
			continue
		}
		return wait(child)
	}
	return 0, errors.Join(reasons...)
}

// namespaces lists what to try. Root in a container often lacks CAP_SYS_ADMIN
// and may still own a user namespace, so it tries both.
func namespaces() []*syscall.SysProcAttr {
	ofUser := &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   unix.SIGKILL,
	}
	if os.Geteuid() != 0 {
		return []*syscall.SysProcAttr{ofUser}
	}
	return []*syscall.SysProcAttr{{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}, ofUser}
}

func start(attributes *syscall.SysProcAttr, more []string) (*exec.Cmd, error) {
	child := exec.Command("/proc/self/exe", os.Args[1:]...)
	child.Args[0] = os.Args[0]
	child.Env = append(append(os.Environ(), stateVariable+"="+entered), more...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = attributes
	if err := child.Start(); err != nil {
		return nil, fmt.Errorf("start the tests in a new namespace: %w", err)
	}
	return child, nil
}

// wait hands signals on until the child ends. `go test` ends a binary that runs
// too long with SIGQUIT, and it is the child's goroutines that are then wanted.
func wait(child *exec.Cmd) (int, error) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGHUP)
	defer signal.Stop(signals)
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		select {
		case s := <-signals:
			// It fails only when the child is gone, which the other case reports.
			_ = child.Process.Signal(s)
		case err := <-ended:
			return exitCode(child, err), nil
		}
	}
}

// exitCode follows the shell for a child that a signal ended, as that must never
// look like a success.
func exitCode(child *exec.Cmd, err error) int {
	if child.ProcessState == nil {
		fmt.Fprintf(os.Stderr, "mountns: wait for the tests: %v\n", err)
		return 1
	}
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		fmt.Fprintf(os.Stderr, "mountns: the tests were ended by a signal: %v\n", status.Signal())
		return 128 + int(status.Signal())
	}
	return child.ProcessState.ExitCode()
}
