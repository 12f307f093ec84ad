package gittest

import (
	"bytes"
	"net"
	"os"
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
	dir := t.TempDir()
	config, log := filepath.Join(dir, "gitconfig"), filepath.Join(dir, "log")
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
			"--verbose", "--log-destination=stderr", "--export-all", "--base-path="+root, root)
		cmd.Env = Environment(config)
		output, err := os.Create(log)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = output
		started := startServer(t, cmd)
		_ = output.Close() // It is the program's.
		if listens(log, started.ended) {
			t.Cleanup(started.stop)
			return d
		}
		started.stop()
	}
	t.Fatal("git daemon does not start")
	return nil
}

// listens waits until the daemon's log says that it listens; a connection would not tell
// it from another test's that has taken the port.
func listens(log string, ended <-chan struct{}) bool {
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		if content, err := os.ReadFile(log); err == nil && bytes.Contains(content, []byte("Ready to rumble")) {
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
