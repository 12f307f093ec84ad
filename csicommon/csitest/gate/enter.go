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
	filter, err := filterFor(calls)
	if err != nil {
		panic(err)
	}
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

// filterFor has each of the calls be asked for, and all others go on.
func filterFor(calls []string) (filter []unix.SockFilter, err error) {
	const number, firstArgument = 0, 16 // In struct seccomp_data; of the argument the lower half.
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	filter = []unix.SockFilter{load(number)}
	isClockAsked := false
	for _, text := range calls {
		call, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, err
		}
		if uint32(call) == Clock {
			isClockAsked = true
			continue
		}
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(call)})
	}
	asks := len(filter) - 1
	last := asks + 2 // Where the call is asked for.
	if isClockAsked {
		last += 3
	}
	for i := 1; i <= asks; i++ {
		filter[i].Jt = uint8(last - i - 1)
	}
	if isClockAsked {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: Clock, Jf: 2},
			load(firstArgument),
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.CLOCK_REALTIME, Jt: 1},
		)
	}
	return append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
	), nil
}

// waitKillable has no signal interrupt a call once it is being decided, so that none is
// decided twice. Linux has it since 5.19.
const waitKillable = 1 << 5 // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV

func install(rules *unix.SockFprog, flags uintptr) (listener uintptr, errno syscall.Errno) {
	listener, _, errno = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|flags, uintptr(unsafe.Pointer(rules)))
	return listener, errno
}
