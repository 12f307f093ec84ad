package mount

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
)

// The test binary runs itself again under a seccomp filter that answers some
// syscalls with an errno, as a container runtime's profile does and as an older
// kernel would.
const (
	deniedVariable      = "MOUNT_TEST_DENIED"
	underFilterVariable = "MOUNT_TEST_UNDER_FILTER"
	chosenVariable      = "MOUNT_TEST_CHOSEN"
)

func TestNewMakesDoWithWhatIsAllowed(t *testing.T) {
	mountns.Require(t)
	newNative(t) // skips where the kernel itself lacks what the rows take away
	for name, row := range map[string]struct {
		errno  unix.Errno
		denied []uint32
		chosen string
	}{
		"all there":                  {unix.ENOSYS, []uint32{unix.SYS_UNSHARE}, "mount.detached *mount.index"},
		"before open_tree":           {unix.ENOSYS, []uint32{unix.SYS_OPEN_TREE}, "mount.classic *mount.index"},
		"before mount_setattr":       {unix.ENOSYS, []uint32{unix.SYS_MOUNT_SETATTR}, "mount.classic *mount.index"},
		"move_mount forbidden":       {unix.EPERM, []uint32{unix.SYS_MOVE_MOUNT}, "mount.classic *mount.index"},
		"before statmount":           {unix.ENOSYS, []uint32{unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT}, "mount.detached mount.mountinfoTable"},
		"listmount alone forbidden":  {unix.EPERM, []uint32{unix.SYS_LISTMOUNT}, "mount.detached mount.mountinfoTable"},
		"statx forbidden":            {unix.EPERM, []uint32{unix.SYS_STATX}, "mount.detached mount.mountinfoTable"},
		"nothing newer than 2.6.26":  {unix.ENOSYS, []uint32{unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_STATX}, "mount.classic mount.mountinfoTable"},
		"everything newer forbidden": {unix.EPERM, []uint32{unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_MOVE_MOUNT, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_STATX}, "mount.classic mount.mountinfoTable"},
	} {
		t.Run(name, func(t *testing.T) {
			denied := fmt.Sprint(int(row.errno))
			for _, number := range row.denied {
				denied += fmt.Sprint(" ", number)
			}
			cmd := exec.Command("/proc/self/exe", "-test.run", "^TestUnderFilter$", "-test.v")
			cmd.Env = append(os.Environ(), deniedVariable+"="+denied, chosenVariable+"="+row.chosen)
			output, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(output), "--- PASS: TestUnderFilter") {
				t.Errorf("%v:\n%s", err, output)
			}
		})
	}
}

// TestUnderFilter is the part of TestNewMakesDoWithWhatIsAllowed that runs under
// the filter; by itself it runs with whatever New chooses here.
func TestUnderFilter(t *testing.T) {
	n := newNode(t)
	s, err := New(Config{Scratch: n.scratch, Log: n.System.log})
	if err != nil {
		t.Fatal(err)
	}
	if chosen, want := fmt.Sprintf("%T %T", s.binds, s.table), os.Getenv(chosenVariable); want != "" && chosen != want {
		t.Errorf("New chose %q, want %q", chosen, want)
	}
	n.binds, n.table, n.asks = s.binds, s.table, s.asks
	volume, target := n.volume(t, "v"), n.target(t, "t")
	loc := n.locate(t, volume)
	n.mustBind(t, volume, target, Options{ReadOnly: true, NoExec: true})
	if info := mountsAt(t, target)[0]; !hasOption(info.Options, "ro") || !hasOption(info.Options, "noexec") {
		t.Errorf("the mount is %q", info.Options)
	}
	if err := os.WriteFile(filepath.Join(target, "f"), nil, 0o600); err == nil {
		t.Error("a read-only target was written to")
	}
	if points := n.points(t, loc); len(points) != 1 || points[target] != 1 {
		t.Errorf("Showing found %v, want %q", points, target)
	}
	if err := n.RequireShared(n.kubelet); err != nil {
		t.Error(err)
	}
	if mounted, err := n.IsMount(volume); err != nil || mounted {
		t.Errorf("IsMount of no mount = %t, %v", mounted, err)
	}
	if err := n.Rescan(); err != nil {
		t.Error(err)
	}
	n.mustUnbind(t, target)
	if points := n.points(t, loc); len(points) != 0 {
		t.Errorf("after Unbind Showing found %v", points)
	}
}

// runUnderFilter replaces this process by one under the filter that denied
// describes: an errno and the numbers of the syscalls that return it.
func runUnderFilter(denied string) {
	var errno uint32
	var numbers []uint32
	for i, field := range strings.Fields(denied) {
		var number uint32
		if _, err := fmt.Sscan(field, &number); err != nil {
			panic(err)
		}
		if i == 0 {
			errno = number
			continue
		}
		numbers = append(numbers, number)
	}
	// The filter is of this thread, and goes with it through execve.
	runtime.LockOSThread()
	if err := installFilter(numbers, errno); err != nil {
		panic(err)
	}
	if err := os.Setenv(underFilterVariable, "yes"); err != nil {
		panic(err)
	}
	panic(syscall.Exec("/proc/self/exe", os.Args, os.Environ()))
}

func installFilter(numbers []uint32, errno uint32) error {
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	for i, number := range numbers {
		program = append(program, unix.SockFilter{
			Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jt: uint8(len(numbers) - i),
		})
	}
	program = append(program,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | errno},
	)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
}
