package bench

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// peer binds and unbinds one directory with mount-utils' mounter, which runs the
// mount and umount programs. It does nothing else that a driver has to do: no
// call over a socket, no record, no check.
type peer struct {
	mounter        mount.Interface
	source, target string
	inside         chan func()
}

// newPeer makes a peer that binds below root and sees the mounts there are now,
// and later ones below root only.
func newPeer(b *testing.B, root string) *peer {
	b.Helper()
	for _, program := range []string{"mount", "umount"} {
		if _, err := exec.LookPath(program); err != nil {
			b.Skipf("the peer needs the %s program: %v", program, err)
		}
	}
	p := &peer{mounter: mount.New(""), source: b.TempDir(), target: filepath.Join(root, "peer"), inside: make(chan func())}
	entered := make(chan error)
	go p.enter(entered)
	if err := <-entered; err != nil {
		b.Fatalf("give the peer a mount namespace: %v", err)
	}
	b.Cleanup(func() { close(p.inside) })
	return p
}

// enter runs what it is given on a thread of its own in a mount namespace of its
// own; the programs it starts inherit that. The thread ends with the goroutine.
func (p *peer) enter(entered chan<- error) {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		entered <- err
		return
	}
	entered <- nil
	for do := range p.inside {
		do()
	}
}

func (p *peer) do(b *testing.B, do func() error) {
	b.Helper()
	done := make(chan error)
	p.inside <- func() { done <- do() }
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

func (p *peer) bind(b *testing.B) {
	b.Helper()
	p.do(b, func() error {
		return errors.Join(os.Mkdir(p.target, 0o750), p.mounter.Mount(p.source, p.target, "", []string{"bind"}))
	})
}

func (p *peer) unbind(b *testing.B) {
	b.Helper()
	p.do(b, func() error {
		return errors.Join(p.mounter.Unmount(p.target), unix.Rmdir(p.target))
	})
}
