package rig

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
)

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
