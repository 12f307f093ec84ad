// Package gate stops a program and its children before the system calls that a test names,
// and lets the test decide about each: it passes, it fails with an error that the kernel
// did not have, or the program is killed first.
//
// It must never decide anything itself, nor be a part of anything but tests. It needs
// Linux's user notification of seccomp, and a TestMain that calls Enter first.
package gate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Decide is asked about each gated call, which waits meanwhile: 0 lets it go on, another
// number is the error that it fails with, undone. It is asked about one call at a time, and
// again, before Linux 5.19, about one that a signal interrupted.
type Decide func(Call) syscall.Errno

// Gate is what one program and its children go through.
type Gate struct {
	ended chan struct{}
	off   atomic.Int64 // How much the clock is off, in nanoseconds.

	mu     sync.Mutex
	decide Decide // nil: every call goes on.
}

// New has the command go through a gate for these calls, which are of Calls or Clock, when it
// starts. At first every call passes.
func New(t testing.TB, cmd *exec.Cmd, calls ...uint32) *Gate {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	own, theirs := os.NewFile(uintptr(pair[0]), "gate"), os.NewFile(uintptr(pair[1]), "gate")
	cmd.Env = append(cmd.Env, programVariable+"="+cmd.Path, callsVariable+"="+strings.Trim(fmt.Sprint(calls), "[]"))
	cmd.Path, cmd.ExtraFiles = "/proc/self/exe", []*os.File{theirs}
	g := &Gate{ended: make(chan struct{})}
	// The cleanup of the process that is started later comes before this one.
	t.Cleanup(func() {
		_ = theirs.Close()
		<-g.ended
	})
	go func() {
		defer close(g.ended)
		listener, err := receive(pair[0])
		_ = own.Close()
		if errors.Is(err, io.EOF) {
			return // The command was ended before it came to the gate.
		}
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

// Set has decide be asked from now on; nil: every call goes on. When it returns, nothing
// asks the one before any more.
func (g *Gate) Set(decide Decide) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.decide = decide
}

func (g *Gate) ask(c Call) syscall.Errno {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.decide == nil {
		return 0
	}
	return g.decide(c)
}

// notification and answer are the kernel's struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	call, arch uint32
	_          uint64
	arguments  [6]uint64
}

type answer struct {
	id    uint64
	_     int64
	error int32
	flags uint32
}

// serve has every call be decided until nobody is left who could make one.
func (g *Gate) serve(listener int) error {
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
		a := answer{id: n.id}
		if n.call == Clock {
			if !g.tell(n) {
				a.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
			}
		} else if errno := g.ask(Call{Number: n.call, Thread: int(n.pid), arguments: n.arguments}); errno != 0 {
			a.error = -int32(errno)
		} else {
			a.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
		}
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

// receive waits for the listener that Enter sends; io.EOF: whoever would send it is gone.
func receive(socket int) (listener int, err error) {
	control := make([]byte, unix.CmsgSpace(4))
	for {
		sent, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if sent == 0 {
			return 0, io.EOF
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
