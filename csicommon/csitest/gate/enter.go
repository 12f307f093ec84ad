package gate

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// programVariable makes the test binary go through a gate, and be the program after that.
const programVariable = "LIKEN_TEST_GATED"

// callsVariable has the numbers of the calls that are gated.
const callsVariable = "LIKEN_TEST_GATED_CALLS"

// Enter returns at once unless this process is a command that New has go through a gate:
// then it replaces the process by the program, under a filter that has each call be asked
// for.
func Enter() {
	program := os.Getenv(programVariable)
	if program == "" {
		return
	}
	calls := strings.Fields(os.Getenv(callsVariable))
	// The program may be this test binary, which must not come here again.
	for _, variable := range []string{programVariable, callsVariable} {
		if err := os.Unsetenv(variable); err != nil {
			panic(err)
		}
	}
	// The filter is of this thread, and goes with it through execve.
	runtime.LockOSThread()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}}
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
	listener, errno := install(&rules, waitKillable)
	if errno == unix.EINVAL {
		listener, errno = install(&rules, 0)
	}
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

// waitKillable has no signal interrupt a call once it is being decided, so that none is
// decided twice. Linux has it since 5.19.
const waitKillable = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

func install(rules *unix.SockFprog, flags uintptr) (listener uintptr, errno syscall.Errno) {
	listener, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|flags, uintptr(unsafe.Pointer(rules)))
	return listener, errno
}
