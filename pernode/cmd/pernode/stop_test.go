package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"liken.sh/csicommon/csitest/process"
	"liken.sh/csicommon/csitest/rig"
)

func TestStopRemovesTheSockets(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.Start()
	for _, socket := range []string{n.Socket(), n.RegistrationSocket()} {
		if !exists(socket) {
			t.Errorf("%s is not there while the plugin runs", socket)
		}
	}
	n.Plugin.Stop()
	for _, socket := range []string{n.Socket(), n.RegistrationSocket()} {
		if exists(socket) {
			t.Errorf("%s is still there", socket)
		}
	}
}

// SIGTERM comes while a publish is under way: the publish is finished, and then
// the plugin ends with code 0.
func TestStopFinishesRunningCalls(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	reached, release := holdUp(t, filepath.Join(n.Store, "holds"))
	published := make(chan error, 1)
	go func() { published <- n.Publish(volume("h1"), rig.Pod(1)) }()
	<-reached
	n.Plugin.Signal(unix.SIGTERM)
	n.Plugin.AwaitLog("finishing running calls")
	process.Await(t, "the registration socket to go", func() bool { return !exists(n.RegistrationSocket()) })
	if n.Plugin.HasEnded() {
		t.Error("the plugin ended while a call was running")
	}
	release()
	rig.WantCode(t, <-published, codes.OK)
	if code := n.Plugin.Wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	n.WantMounts(n.Target("h1", 1), 1)
}

// A second SIGTERM is for whoever does not want to wait for a call that hangs.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	n := newNode(t, "h1")
	n.Start()
	reached, release := holdUp(t, filepath.Join(n.Store, "holds"))
	published := make(chan error, 1)
	go func() { published <- n.Publish(volume("h1"), rig.Pod(1)) }()
	<-reached
	n.Plugin.Signal(unix.SIGTERM)
	n.Plugin.AwaitLog("finishing running calls")
	process.Await(t, "the plugin to end", func() bool {
		n.Plugin.Signal(unix.SIGTERM)
		return n.Plugin.HasEnded()
	})
	if code := n.Plugin.Wait(); code != -1 {
		t.Errorf("exit code %d, want a death by the signal", code)
	}
	release()
	if err := <-published; err == nil {
		t.Error("the call that was cut off says OK")
	}
}

// holdUp lets the next process that makes a file in dir wait, in its open call,
// until release is called. reached is closed when one waits.
func holdUp(t *testing.T, dir string) (reached <-chan struct{}, release func()) {
	t.Helper()
	group, err := unix.FanotifyInit(unix.FAN_CLASS_CONTENT|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY)
	if errors.Is(err, unix.EPERM) {
		t.Skip("holding up a call needs fanotify, which wants root outside of a user namespace")
	}
	if err != nil {
		t.Fatalf("fanotify_init: %v", err)
	}
	events := os.NewFile(uintptr(group), "fanotify")
	t.Cleanup(func() { _ = events.Close() }) // whoever still waits then goes on
	if err := unix.FanotifyMark(group, unix.FAN_MARK_ADD, unix.FAN_OPEN_PERM|unix.FAN_EVENT_ON_CHILD, unix.AT_FDCWD, dir); err != nil {
		t.Fatalf("fanotify_mark: %v", err)
	}
	waiting, released := make(chan struct{}), make(chan struct{})
	go func() {
		for isFirst := true; ; {
			opened, name, err := nextOpen(events)
			if err != nil {
				return // closed by the cleanup
			}
			if isFirst && strings.HasPrefix(filepath.Base(name), ".new-") {
				isFirst = false
				close(waiting)
				<-released
			}
			allow(events, opened)
		}
	}()
	return waiting, func() { close(released) }
}

// nextOpen waits for the next open that asks for permission.
func nextOpen(events *os.File) (opened int32, name string, err error) {
	buffer := make([]byte, unsafe.Sizeof(unix.FanotifyEventMetadata{})) // room for one
	if _, err := events.Read(buffer); err != nil {
		return 0, "", err
	}
	const fdOffset = unsafe.Offsetof(unix.FanotifyEventMetadata{}.Fd)
	opened = int32(binary.NativeEndian.Uint32(buffer[fdOffset:]))
	name, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", opened))
	return opened, name, err
}

func allow(events *os.File, opened int32) {
	answer := binary.NativeEndian.AppendUint32(nil, uint32(opened))
	answer = binary.NativeEndian.AppendUint32(answer, unix.FAN_ALLOW)
	_, _ = events.Write(answer)
	_ = unix.Close(int(opened))
}
