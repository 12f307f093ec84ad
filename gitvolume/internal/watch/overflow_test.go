package watch

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	// rootVariable tells the child which directory holds its trees.
	rootVariable = "WATCH_TEST_ROOT"
	// mostFlood bounds what the test puts into a queue that is larger than usual.
	mostFlood = 200_000
)

// C23: the kernel's queue overflows while the process is stopped. The quiet tree's
// one change comes when the queue is full of another tree's events.
func TestOverflow(t *testing.T) {
	t.Parallel()
	if isChild(t) {
		overflown(t)
		return
	}
	files := queueLimit() // At two events each.
	if files > mostFlood {
		t.Skipf("fs.inotify.max_queued_events is %d here: an overflow takes too many files", files)
	}
	root := t.TempDir()
	for _, name := range []string{"busy", "quiet"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := child(t)
	cmd.Env = append(cmd.Env, rootVariable+"="+root)
	to, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(from)
	for lines.Scan() && lines.Text() != "ready" {
		t.Log(lines.Text())
	}
	pid := cmd.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped(t, pid)
	for i := range files {
		write(t, filepath.Join(root, "busy", strconv.Itoa(i)), "")
	}
	write(t, filepath.Join(root, "quiet", "lost"), "x")
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(to, "go"); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the stopped process: %v", err)
	}
}

// stopped waits until the process is.
func stopped(t *testing.T, pid int) {
	t.Helper()
	var status unix.Siginfo
	if err := unix.Waitid(unix.P_PID, pid, &status, unix.WSTOPPED, nil); err != nil {
		t.Fatal(err)
	}
}

func overflown(t *testing.T) {
	trees := New()
	busy := start(t, trees, filepath.Join(os.Getenv(rootVariable), "busy"))
	defer busy.w.Stop()
	quiet := start(t, trees, filepath.Join(os.Getenv(rootVariable), "quiet"))
	defer quiet.w.Stop()
	busy.calm()
	quiet.calm()
	fmt.Println("ready")
	if _, err := io.ReadFull(os.Stdin, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	busy.converge()
	quiet.converge()
	if quiet.whole == 0 {
		t.Error("the quiet tree's event was not lost: the queue did not overflow")
	}
	busy.calm()
	quiet.calm()
}

// More events than can be taken in time, from a tree that is being unpacked.
func TestBurst(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	o := start(t, New(), root)
	defer o.w.Stop()
	o.calm()
	const files = 20_000
	for i := range files {
		if i%100 == 0 {
			if err := os.Mkdir(filepath.Join(root, strconv.Itoa(i)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(root, strconv.Itoa(i-i%100), strconv.Itoa(i)), "x")
	}
	o.converge()
	o.calm()
}
