package nodetest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
)

// gatedVariable makes the test binary go through a gate, and be the program after that.
const gatedVariable = "GITVOLUME_NODETEST_GATED"

// gatedCallsVariable has the numbers of the calls that are gated.
const gatedCallsVariable = "GITVOLUME_NODETEST_GATED_CALLS"

// steps are the calls that change what outlives a process, and those that begin something
// elsewhere.
var steps = map[uint32]string{
	unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_MKDIRAT: "mkdirat",
	unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_LINKAT: "linkat", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
	unix.SYS_SYNCFS: "syncfs", unix.SYS_FCHMOD: "fchmod", unix.SYS_FCHMODAT: "fchmodat", unix.SYS_FCHOWN: "fchown",
	unix.SYS_MOVE_MOUNT: "move_mount", unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount2",
	unix.SYS_CONNECT: "connect", unix.SYS_EXECVE: "execve",
}

// gate stops a process and its children before each step, and kills the process at one of
// them.
type gate struct {
	ended chan struct{}

	mu sync.Mutex
	// passed is how many steps there were since the last reset.
	passed  int
	kills   func(passed int) bool // nil: it never does.
	killed  string                // The step.
	victim  *process.Process
	callers map[uint32]bool // Threads that made a step, since the last reset.
}

// newGate has the command, which is of node.command, go through a gate when it starts.
func newGate(t testing.TB, cmd *exec.Cmd) *gate {
	t.Helper()
	return newGateOf(t, cmd, slices.Collect(maps.Keys(steps))...)
}

// newGateOf is newGate for these calls alone.
func newGateOf(t testing.TB, cmd *exec.Cmd, calls ...uint32) *gate {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	own, theirs := os.NewFile(uintptr(pair[0]), "gate"), os.NewFile(uintptr(pair[1]), "gate")
	cmd.Env = append(cmd.Env, gatedVariable+"="+cmd.Path, gatedCallsVariable+"="+strings.Trim(fmt.Sprint(calls), "[]"))
	cmd.Path, cmd.ExtraFiles = "/proc/self/exe", []*os.File{theirs}
	g := &gate{ended: make(chan struct{}), callers: map[uint32]bool{}}
	// The cleanup of the process that is started later comes before this one.
	t.Cleanup(func() {
		_ = theirs.Close()
		<-g.ended
		_ = own.Close()
	})
	go func() {
		defer close(g.ended)
		listener, err := receive(pair[0])
		if err != nil {
			t.Errorf("receive the gate: %v", err)
			return
		}
		defer unix.Close(listener)
		if err := g.serve(listener); err != nil {
			t.Errorf("serve the gate: %v", err)
		}
	}()
	return g
}

// reset counts the steps anew, and has the process be killed before the first at which that
// says so; nil: before none.
func (g *gate) reset(victim *process.Process, kills func(passed int) bool) (passed int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	passed = g.passed
	g.victim, g.passed, g.kills = victim, 0, kills
	clear(g.callers)
	return passed
}

// count is how many threads made a step since the last reset.
func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.callers)
}

// death is the step at which the process was killed; empty: it was not.
func (g *gate) death() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.killed
}

func (g *gate) step(name string, pid uint32) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed++
	g.callers[pid] = true
	if g.killed != "" || g.kills == nil || !g.kills(g.passed) {
		return nil
	}
	g.killed = name
	if _, err := os.Lstat(fmt.Sprintf("/proc/%d/task/%d", g.victim.Pid(), pid)); err != nil {
		g.killed += " of a child"
	}
	return unix.Kill(g.victim.Pid(), unix.SIGKILL)
}

// notification and answer are the kernel's struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	call, arch uint32
	_          uint64
	_          [6]uint64
}

type answer struct {
	id    uint64
	_     int64
	_     int32
	flags uint32
}

// serve lets every call go on until nobody is left who could make one.
func (g *gate) serve(listener int) error {
	for {
		events := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		_, err := unix.Poll(events, -1)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case events[0].Revents&unix.POLLIN == 0:
			return nil
		}
		var n notification
		if err := control(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); err != nil {
			continue // Whoever called is gone.
		}
		if err := g.step(steps[n.call], n.pid); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_ = control(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a)) // The same.
	}
}

func control(fd int, request uintptr, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

// receive waits for the listener that enterGate sends.
func receive(socket int) (listener int, err error) {
	control := make([]byte, unix.CmsgSpace(4))
	for {
		_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		messages, err := unix.ParseSocketControlMessage(control[:n])
		if err != nil || len(messages) != 1 {
			return 0, fmt.Errorf("%d messages: %w", len(messages), errors.Join(err, os.ErrClosed))
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			return 0, err
		}
		return fds[0], nil
	}
}

// enterGate replaces this process by the program, under a filter that has each step be
// asked for. It is the child's.
func enterGate(program string) {
	// The filter is of this thread, and goes with it through execve.
	runtime.LockOSThread()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
	calls := strings.Fields(os.Getenv(gatedCallsVariable))
	for i, text := range calls {
		number, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			panic(err)
		}
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(number), Jt: uint8(len(calls) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
	)
	rules := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&rules)))
	if errno != 0 {
		panic(errno)
	}
	const socket = 3 // The first of ExtraFiles.
	if err := unix.Sendmsg(socket, []byte{0}, unix.UnixRights(int(listener)), nil, 0); err != nil {
		panic(err)
	}
	unix.CloseOnExec(socket)
	panic(syscall.Exec(program, os.Args, os.Environ()))
}
