package nodetest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience bounds every wait, for a machine that is slow and loaded.
const patience = 90 * time.Second

// process is one running plugin.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	log   *output
	ended chan struct{}
}

// startProcess starts cmd and sees to it that it is gone with the test. A plugin
// that is still running then has to stop cleanly.
func startProcess(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, log: &output{}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the plugin: %v", err)
	}
	go func() {
		_ = cmd.Wait() // ProcessState has all that it says
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("the plugin's log:\n%s", p.log)
		}
	})
	return p
}

// stop sends SIGTERM and wants exit code 0; a data race would be another one.
func (p *process) stop() {
	p.t.Helper()
	if p.hasEnded() {
		return
	}
	p.signal(unix.SIGTERM)
	if code := p.wait(); code != 0 {
		p.t.Errorf("the plugin ended with code %d after SIGTERM, want 0", code)
	}
}

func (p *process) kill() {
	p.t.Helper()
	p.signal(unix.SIGKILL)
	p.wait()
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("send %v to the plugin: %v", s, err)
	}
}

// wait returns the exit code, -1 for a signal.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.t.Error("the plugin did not end")
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// awaitLog waits until the plugin logged words.
func (p *process) awaitLog(words string) {
	p.t.Helper()
	await(p.t, "the plugin to log "+strconv.Quote(words), func() bool {
		if strings.Contains(p.log.String(), words) {
			return true
		}
		if p.hasEnded() {
			p.t.Fatalf("the plugin ended with code %d", p.cmd.ProcessState.ExitCode())
		}
		return false
	})
}

var httpAddress = regexp.MustCompile(`msg=starting .* http=(\S+)`)

// address is where the plugin serves HTTP.
func (p *process) address() string {
	p.t.Helper()
	p.awaitLog("msg=starting")
	found := httpAddress.FindStringSubmatch(p.log.String())
	if found == nil {
		p.t.Fatal("the plugin does not tell its HTTP address")
	}
	return "http://" + found[1]
}

// refused wants one line that has the words, and the exit code for a start that cannot work.
func (p *process) refused(words ...string) {
	p.t.Helper()
	if code := p.wait(); code != 2 {
		p.t.Errorf("exit code %d, want 2", code)
	}
	said := p.log.String()
	if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "gitvolume: ") {
		p.t.Errorf("it says %q, want one line that starts with \"gitvolume: \"", said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			p.t.Errorf("it says %q, which lacks %q", said, word)
		}
	}
}

// worked is what the plugin has used of the processors, in all its threads.
func (p *process) worked() time.Duration { return p.processorTime(2) }

// processorTime sums the first of the fields about a process's use of the processors: its
// own, as a user and in the kernel, and the same of its children.
func (p *process) processorTime(number int) time.Duration {
	p.t.Helper()
	content, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/stat")
	if err != nil {
		p.t.Fatal(err)
	}
	// After the name, which may hold anything, come the fields from the third on.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	var ticks int64
	for _, field := range fields[11 : 11+number] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		ticks += n
	}
	const perSecond = 100 // On every platform of Linux.
	return time.Duration(ticks) * time.Second / perSecond
}

// output collects what a process writes while others read it.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
