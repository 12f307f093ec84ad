package worktree

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// childVariable names the test that a process was started for by another.
const childVariable = "LIKEN_TEST_CHILD"

func TestMain(m *testing.M) {
	if base := os.Getenv(crashingIn); base != "" {
		crash(base)
	}
	if dir := os.Getenv(scanningIn); dir != "" {
		scanning(dir)
	}
	if dir := os.Getenv(idlingIn); dir != "" {
		idle(dir)
	}
	if os.Getenv(childVariable) != "" {
		os.Exit(m.Run())
	}
	mountns.Main(m)
}

// inUserNamespace runs the test in a process of its own, as root of a user namespace
// whose limits it may set, and returns false, or true in that process.
func inUserNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv(childVariable) == t.Name() {
		return true
	}
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	child.Env = append(os.Environ(), childVariable+"="+t.Name())
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	output, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("the test in its own user namespace: %v\n%s", err, output)
	}
	t.Logf("%s", output)
	return false
}

// underStrace starts this binary with the variable under strace, and gives what it says.
func underStrace(t *testing.T, variable string, arguments ...string) string {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "strace", "-o", "/dev/null", "true").Run(); err != nil {
		t.Skipf("strace is needed, and a process that may be traced: %v", err)
	}
	command := exec.CommandContext(t.Context(), "strace", append(append([]string{"-f", "-qq", "-o", "/dev/null"}, arguments...), os.Args[0])...)
	command.Env = append(os.Environ(), variable)
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return string(said)
}

// limit sets how many inotify watches this process's own user namespace may have.
func limit(t *testing.T, watches string) {
	t.Helper()
	if os.Getenv(childVariable) != t.Name() {
		t.Fatal("limits are set in a user namespace of the test's own alone")
	}
	if err := os.WriteFile("/proc/sys/user/max_inotify_watches", []byte(watches), 0); err != nil {
		t.Fatal(err)
	}
}
