package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
)

// MountHung leaves a FUSE mount on dir that answers nothing until the test ends: a disk
// that hangs.
func MountHung(t testing.TB, dir string) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		t.Cleanup(func() { _ = unix.Close(fd) }) // Whoever still waits then gets an error.
		err = unix.Mount("hung", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	}
	if err != nil {
		t.Skipf("a disk that hangs needs FUSE: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// MountDead leaves a FUSE mount on dir, made if missing, whose process was killed.
func MountDead(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	before := len(MountsAt(t, os.Getpid(), dir))
	program, err := exec.LookPath("bindfs")
	if err != nil {
		t.Skip("a dead mount needs bindfs to be installed")
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("a dead mount needs FUSE: %v", err)
	}
	_ = device.Close()
	fuse := process.Start(t, exec.Command(program, "-f", t.TempDir(), dir))
	process.Await(t, "bindfs to mount", func() bool { return len(MountsAt(t, os.Getpid(), dir)) > before })
	fuse.Kill()
	if _, err := os.Stat(dir); !errors.Is(err, unix.ENOTCONN) {
		t.Fatalf("stat of the dead mount: %v, want %v", err, unix.ENOTCONN)
	}
}
