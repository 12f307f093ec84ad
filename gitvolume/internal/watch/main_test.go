package watch

import (
	"flag"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// childVariable names the test that a process was started for by another.
const childVariable = "WATCH_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(m.Run())
	}
	// Defaults for the tests that most of the time is waited in; flags override them.
	for name, value := range map[string]string{"rapid.checks": "8", "test.parallel": "8", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	mountns.Main(m)
}

func isChild(t *testing.T) bool { return os.Getenv(childVariable) == t.Name() }

// child prepares a process that runs this test alone, as root of a user namespace
// whose limits it may set.
func child(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), childVariable+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	return cmd
}

// inChild runs the test in a child and returns false, or true in the child.
func inChild(t *testing.T) bool {
	t.Helper()
	if isChild(t) {
		return true
	}
	output, err := child(t).CombinedOutput()
	if err != nil {
		t.Fatalf("the test in its own user namespace: %v\n%s", err, output)
	}
	t.Logf("%s", output)
	return false
}

// limit sets a limit of this process's own user namespace.
func limit(t *testing.T, name, value string) {
	t.Helper()
	if !isChild(t) {
		t.Fatal("limits are set in a user namespace of the test's own alone")
	}
	if err := os.WriteFile("/proc/sys/user/"+name, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}
