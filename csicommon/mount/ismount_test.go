package mount

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestIsMount(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume := n.volume(t, "v")
		bound, plain, self := n.target(t, "bound"), n.target(t, "plain"), n.target(t, "self")
		mkdir(t, filepath.Join(volume, "inside"))
		n.mustBind(t, volume, bound, Options{})
		// Two binds of one device and of one directory: device numbers tell nothing.
		mustMount(t, self, self, "", unix.MS_BIND)
		file := write(t, filepath.Join(n.kubelet, "file"))
		mustMount(t, write(t, filepath.Join(n.store, "f")), file, "", unix.MS_BIND)
		link := filepath.Join(n.kubelet, "link")
		if err := os.Symlink(bound, link); err != nil {
			t.Fatal(err)
		}
		hidden := mkdir(t, filepath.Join(n.target(t, "over"), "hidden"))
		mustMount(t, volume, hidden, "", unix.MS_BIND)
		mustMount(t, "tmpfs", filepath.Dir(hidden), "tmpfs", 0)
		mkdir(t, hidden)

		for path, want := range map[string]bool{
			bound:                             true,
			bound + "/":                       true,
			self:                              true,
			file:                              true,
			n.kubelet:                         true,
			filepath.Dir(hidden):              true,
			plain:                             false,
			volume:                            false,
			filepath.Join(bound, "inside"):    false,
			link:                              false,
			link + "/":                        false,
			hidden:                            false,
			filepath.Join(plain, "missing"):   false,
			filepath.Join(n.kubelet, "a/b"):   false,
			filepath.Join(n.kubelet, "file/"): true,
			filepath.Join(n.store, "f", "x"):  false,
		} {
			if got, err := n.IsMount(path); err != nil || got != want {
				t.Errorf("IsMount(%q) = %t, %v, want %t", path, got, err, want)
			}
			if m, got, err := n.At(path); err != nil || got != want {
				t.Errorf("At(%q) = %+v, %t, %v, want %t", path, m, got, err, want)
			}
		}
		if _, err := n.IsMount("relative"); !errors.Is(err, ErrPath) {
			t.Errorf("IsMount of a relative path: %v, want ErrPath", err)
		}
	})
}

func TestIsMountSaysWhenItCannotKnow(t *testing.T) {
	n := newNative(t)
	target := n.target(t, "t")
	for _, failure := range []error{unix.ENOMEM, unix.ELOOP} {
		n.asks = func(string) (bool, error) { return false, failure }
		if _, err := n.IsMount(target); !errors.Is(err, failure) {
			t.Errorf("the kernel answers %v: IsMount returned %v", failure, err)
		}
		if err := n.Bind(handle(t, n.volume(t, "v")), target, Options{}); !errors.Is(err, failure) {
			t.Errorf("the kernel answers %v: Bind returned %v", failure, err)
		}
		if err := n.Unbind(target); !errors.Is(err, failure) {
			t.Errorf("the kernel answers %v: Unbind returned %v", failure, err)
		}
	}
	requireMounts(t, target, 0)
}

// A filesystem that answers with an error is a mount when the table says so.
func TestCorruptedPathIsAMountOnlyIfTheTableHasIt(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		bound, plain := n.target(t, "bound"), n.target(t, "plain")
		n.mustBind(t, n.volume(t, "v"), bound, Options{})
		for _, failure := range []error{unix.ENOTCONN, unix.ESTALE, unix.EIO, unix.EACCES} {
			n.asks = func(string) (bool, error) { return false, failure }
			if got, err := n.IsMount(bound); err != nil || !got {
				t.Errorf("%v at a mount: %t, %v", failure, got, err)
			}
			if got, err := n.IsMount(plain); err != nil || got {
				t.Errorf("%v at a plain directory: %t, %v", failure, got, err)
			}
		}
		for point, want := range map[string]bool{bound: true, plain: false} {
			if m, got, err := (mountinfoTable{}).last(point); err != nil || got != want || (got && m.Point != point) {
				t.Errorf("by path alone, %q is %+v, %t, %v", point, m, got, err)
			}
		}
	})
}

// deadMount leaves a FUSE mount at target whose process was killed.
func deadMount(t *testing.T, source, target string) {
	t.Helper()
	bindfs, err := exec.LookPath("bindfs")
	if err != nil {
		t.Skipf("a dead FUSE mount is made with bindfs: %v", err)
	}
	device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("a dead FUSE mount needs /dev/fuse: %v", err)
	}
	device.Close()
	before := len(mountsAt(t, target))
	server := exec.Command(bindfs, "-f", source, target)
	server.Stdout, server.Stderr = io.Discard, os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "bindfs to mount", func() bool { return len(mountsAt(t, target)) > before })
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	until(t, "the mount to be dead", func() bool {
		_, err := os.Stat(target)
		return errors.Is(err, unix.ENOTCONN)
	})
}

func TestDeadFUSEMount(t *testing.T) {
	onBoth(t, func(t *testing.T, n *node) {
		volume, target := n.volume(t, "v"), n.target(t, "t")
		deadMount(t, volume, target)
		if mounted, err := n.IsMount(target); err != nil || !mounted {
			t.Errorf("IsMount = %t, %v", mounted, err)
		}
		if m, mounted, err := n.At(target); err != nil || !mounted || m.Point != target {
			t.Errorf("At = %+v, %t, %v", m, mounted, err)
		}
		if err := n.Bind(handle(t, volume), target, Options{}); !errors.Is(err, ErrMounted) {
			t.Errorf("Bind: %v, want ErrMounted", err)
		}
		// A driver that took the dead mount for none bound on top of it.
		mustMount(t, volume, target, "", unix.MS_BIND)
		n.mustUnbind(t, target)
		requireMounts(t, target, 0)
		n.target(t, "t")
		n.mustBind(t, volume, target, Options{})
		write(t, filepath.Join(target, "alive"))
	})
}
