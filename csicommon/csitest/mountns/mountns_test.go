package mountns_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

const (
	// endVariable makes one of the two processes end or fail as told, for the tests
	// that look at what Main makes of it.
	endVariable = "MOUNTNS_TEST_END"
	// outerVariable holds the namespace the tests were started from.
	outerVariable = "MOUNTNS_TEST_OUTER"
	stateVariable = "LIKEN_TEST_MOUNT_NAMESPACE"
)

func TestMain(m *testing.M) {
	inner := os.Getenv(stateVariable) != ""
	switch end := os.Getenv(endVariable); {
	case end == "in memory":
		mountns.MainInMemory(m)
	case end == "code" && inner:
		os.Exit(7)
	case end == "signal" && inner:
		_ = unix.Kill(os.Getpid(), unix.SIGKILL)
		select {}
	case end == "no namespace":
		// A limit of this user namespace and those below it, not of the machine.
		if err := os.WriteFile("/proc/sys/user/max_mnt_namespaces", []byte("0"), 0); err != nil {
			panic(err)
		}
	case !inner:
		if link, err := os.Readlink("/proc/self/ns/mnt"); err == nil {
			_ = os.Setenv(outerVariable, link)
		}
	}
	mountns.Main(m)
}

func mounted(t *testing.T, path string) bool {
	t.Helper()
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	if err != nil {
		t.Fatal(err)
	}
	return len(infos) > 0
}

func TestMountsStayInTheNamespace(t *testing.T) {
	mountns.Require(t)
	self, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	outer := os.Getenv(outerVariable)
	if outer == "" {
		t.Fatal("the namespace the tests were started from is not known")
	}
	if self == outer {
		t.Fatalf("the tests run in the mount namespace they were started from: %s", self)
	}
	root, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter("/"))
	if err != nil || len(root) == 0 {
		t.Fatalf("the root is not in the mount table: %v", err)
	}
	if root[0].Optional != "" {
		t.Fatalf("the root mount is %q, want a private one", root[0].Optional)
	}
}

func TestSharedDirIsGoneWithItsMounts(t *testing.T) {
	var dir, kept string
	t.Run("test that mounts", func(t *testing.T) {
		dir = mountns.SharedDir(t)
		infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(dir))
		if err != nil || len(infos) != 1 || infos[0].Optional == "" {
			t.Fatalf("%s is not one shared mount: %+v, %v", dir, infos, err)
		}
		store := t.TempDir()
		kept = filepath.Join(store, "kept")
		if err := os.WriteFile(kept, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		inner := filepath.Join(dir, "a", "b")
		if err := os.MkdirAll(inner, 0o700); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := unix.Mount(store, inner, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
		}
		mountns.UnmountBelow(t, filepath.Join(dir, "a"))
		if mounted(t, inner) || !mounted(t, dir) {
			t.Fatalf("unmounting below a: inner mounted %t, the directory itself %t", mounted(t, inner), mounted(t, dir))
		}
		if _, err := os.Stat(kept); err != nil {
			t.Fatalf("a file behind an unmounted bind is gone: %v", err)
		}
		if err := unix.Mount(dir, inner, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	})
	if mounted(t, dir) {
		t.Fatalf("%s is still mounted after its test", dir)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Fatalf("%s is still there after its test: %v", dir, err)
	}
}

func TestTemporaryDirectoriesInMemory(t *testing.T) {
	mountns.Require(t)
	if os.Getenv(endVariable) != "" {
		var stat unix.Statfs_t
		if err := unix.Statfs(t.TempDir(), &stat); err != nil || stat.Type != unix.TMPFS_MAGIC {
			t.Fatalf("the temporary directory is on a file system of kind %x: %v", stat.Type, err)
		}
		if os.Getenv("LIKEN_TEST_IN_MEMORY") != "" {
			t.Fatal("a process of the tests would hide the directory")
		}
		return
	}
	cmd, place := outside("in memory", "-test.run", "^TestTemporaryDirectoriesInMemory$"), t.TempDir()
	cmd.Env = append(cmd.Env, "TMPDIR="+place)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v; output:\n%s", err, output)
	}
	if left, err := os.ReadDir(place); err != nil || len(left) != 0 {
		t.Fatalf("%v is left: %v", left, err)
	}
}

func TestExitCodeIsTheInnerOne(t *testing.T) {
	mountns.Require(t)
	for name, want := range map[string]int{"code": 7, "signal": 128 + int(unix.SIGKILL)} {
		t.Run(name, func(t *testing.T) {
			cmd := outside(name)
			output, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != want {
				t.Fatalf("exit code %d, want %d; output:\n%s", got, want, output)
			}
		})
	}
}

func TestWithoutNamespaceTestsAreSkippedWithTheReason(t *testing.T) {
	mountns.Require(t)
	cmd := outside("no namespace", "-test.v", "-test.run", "^TestMountsStayInTheNamespace$")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("the tests failed: %v; output:\n%s", err, output)
	}
	for _, want := range []string{"mountns: tests that mount are skipped: ", "--- SKIP: TestMountsStayInTheNamespace", "needs a mount namespace of its own: "} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the output lacks %q:\n%s", want, output)
		}
	}
}

// outside prepares a run of this binary as `go test` starts it: in no namespace
// that Main made.
func outside(end string, arguments ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", arguments...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, stateVariable+"=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, endVariable+"="+end)
	return cmd
}
