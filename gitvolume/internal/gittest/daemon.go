package gittest

import (
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Daemon is a running git daemon, which ends with the test.
type Daemon struct {
	address string
}

// StartDaemon serves every repository below root by git's own protocol.
func StartDaemon(t testing.TB, root string) *Daemon {
	t.Helper()
	config := filepath.Join(t.TempDir(), "gitconfig")
	write(t, config, "")
	// Not by "git daemon", which would be one more process to end.
	programs, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(strings.TrimSpace(string(programs)), "git-daemon")
	for range 5 {
		port := freePort(t, "127.0.0.1")
		d := &Daemon{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
		cmd := exec.Command(program, "--reuseaddr", "--listen=127.0.0.1", "--port="+strconv.Itoa(port),
			"--export-all", "--base-path="+root, root)
		cmd.Env = Environment(config)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		if d.answers(ended) {
			t.Cleanup(func() {
				endTree(cmd.Process.Pid)
				<-ended
			})
			return d
		}
		endTree(cmd.Process.Pid)
		<-ended
	}
	t.Fatal("git daemon does not start")
	return nil
}

func (d *Daemon) answers(ended <-chan struct{}) bool {
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		if conn, err := net.DialTimeout("tcp", d.address, time.Second); err == nil {
			_ = conn.Close()
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	return false
}

// URL is the repository at the path below root.
func (d *Daemon) URL(path string) string { return "git://" + d.address + path }
