package remote

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// keepGroups makes setgroups succeed and do nothing, for this thread and what it runs.
// ssh as root sets its groups before it runs a KnownHostsCommand, which takes a
// capability, and gives up when it fails; the groups of who has no capability are
// without use.
func keepGroups() error {
	architecture, known := map[string]uint32{
		"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "riscv64": unix.AUDIT_ARCH_RISCV64,
		"ppc64le": unix.AUDIT_ARCH_PPC64LE, "s390x": unix.AUDIT_ARCH_S390X,
	}[runtime.GOARCH]
	if !known {
		return nil
	}
	// What a filter sees: the call's number first, and then the architecture.
	const number, arch = 0, 4
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	unless := func(value uint32, skip uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
	}
	give := func(action uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
	}
	filter := []unix.SockFilter{
		load(arch),
		unless(architecture, 3),
		load(number),
		unless(unix.SYS_SETGROUPS, 1),
		give(unix.SECCOMP_RET_ERRNO), // with number 0, which is success
		give(unix.SECCOMP_RET_ALLOW),
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, failure := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&program)))
	if failure != 0 {
		return fmt.Errorf("have setgroups do nothing: %w", failure)
	}
	return nil
}
