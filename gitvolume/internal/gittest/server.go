package gittest

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// server is a program that a test has started. It is waited for only when it is stopped:
// the number of one that ended and was waited for is soon another program's, which stop
// would kill.
type server struct {
	cmd   *exec.Cmd
	ended chan struct{} // Closed when it has ended.
}

// startServer starts a program that ends with the tests at the latest, also if they are
// ended by force.
func startServer(t testing.TB, cmd *exec.Cmd) *server {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	s := &server{cmd, make(chan struct{})}
	started := make(chan error)
	go func() {
		defer close(s.ended)
		// Pdeathsig follows the thread that started the child, not the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for {
			err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return s
}

// stop ends it with all below it.
func (s *server) stop() {
	endTree(s.cmd.Process.Pid)
	<-s.ended
	_ = s.cmd.Wait()
}
