package gittest

import (
	"errors"
	"os/exec"
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

func startServer(t testing.TB, cmd *exec.Cmd) *server {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{cmd, make(chan struct{})}
	go func() {
		defer close(s.ended)
		for {
			err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
			if !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	return s
}

// stop ends it with all below it.
func (s *server) stop() {
	endTree(s.cmd.Process.Pid)
	<-s.ended
	_ = s.cmd.Wait()
}
