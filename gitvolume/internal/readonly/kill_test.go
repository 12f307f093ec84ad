package readonly_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
)

// The environment of a process that updates a tree until it is killed.
const (
	killDir = "READONLY_TEST_KILL_STORE"
	ready   = "READONLY_TEST_KILL_READY" // A file that it makes once there is a tree.
)

const killFiles = 30

// TestUpdateIsKilled kills a process at any time of an update. The next one, which cannot
// reach the remote, brings the tree to the one commit or the other.
func TestUpdateIsKilled(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	isReady := filepath.Join(t.TempDir(), "ready")
	for round := range 6 {
		_ = os.Remove(isReady)
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestUpdatesUntilKilled$")
		cmd.Env = append(os.Environ(), killDir+"="+n.dir, ready+"="+isReady)
		n.must(cmd.Start())
		until(t, "a tree", func() bool {
			_, err := os.Stat(isReady)
			return err == nil
		})
		time.Sleep(time.Duration(round*7) * time.Millisecond) // Where in the update does not matter.
		n.must(cmd.Process.Kill())
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("it was not killed: %v", err)
		}
		u := &upstream{err: &remote.Failure{Kind: remote.ErrUnreachable}, files: killFiles}
		n.connect = u.of
		n.start()
		a := n.resume()["v"]
		until(t, "all files are of one commit", func() bool { return isWhole(a) })
		u.set(func(u *upstream) { u.err, u.content = nil, fmt.Sprint("last ", round) })
		a.Demand()
		shows(t, a, "f", fmt.Sprint("last ", round))
		until(t, "nothing is wrong", func() bool { return n.faults("v") == "" && isWhole(a) })
		n.stop()
	}
}

func isWhole(a *readonly.Attachment) bool {
	content := read(a, "f")
	for i := range killFiles {
		if read(a, fileName(i)) != content {
			return false
		}
	}
	return content != ""
}

// TestUpdatesUntilKilled is the process that is killed.
func TestUpdatesUntilKilled(t *testing.T) {
	dir := os.Getenv(killDir)
	if dir == "" {
		t.Skip("it is run by another test")
	}
	u := &upstream{content: "0", files: killFiles}
	n := newNode(t)
	n.dir, n.connect = dir, u.of
	n.start()
	n.resume()
	a := n.attach(n.volume("v", url, nil))
	for i := 1; ; i++ {
		content := fmt.Sprint(os.Getpid(), " ", i)
		u.push(content)
		a.Demand()
		shows(t, a, "f", content)
		if i == 1 {
			n.must(os.WriteFile(os.Getenv(ready), nil, 0o600))
		}
	}
}
