// Package process starts programs as tests need them: what they write is kept and shown
// when a test fails, they are gone with the test, and whatever is waited for has a bound.
//
// It must never wait without a bound, know what a program does, or end a process that it
// did not start.
package process

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Patience bounds every wait, for a machine that is slow and loaded.
const Patience = 2 * time.Minute

// DependsOnDrivers is called by a test that compiles a driver while it runs. Go's test cache
// cannot see that, and would give its result again although the driver is another; but it
// sees what a test asks of the environment, where `make test` says what drivers are made of.
func DependsOnDrivers() { _ = os.Getenv("LIKEN_TEST_SOURCES") }

// Process is one running program, from Start on.
type Process struct {
	// Log is what it writes to the streams that its command leaves open.
	Log   Output
	t     testing.TB
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts cmd. A process that runs when the test ends is killed then.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{t: t, cmd: cmd, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = &p.Log
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &p.Log
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %q: %v", cmd.Args, err)
	}
	go func() {
		_ = cmd.Wait() // ProcessState has all that it says
		close(p.ended)
	}()
	t.Cleanup(func() {
		if !p.HasEnded() {
			p.Kill()
		}
		if t.Failed() {
			t.Logf("%q wrote:\n%s", cmd.Args, &p.Log)
		}
	})
	return p
}

// Pid is the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Stop sends SIGTERM, if it runs, and wants exit code 0; a data race would be another one.
func (p *Process) Stop() {
	p.t.Helper()
	if !p.HasEnded() {
		p.End(unix.SIGTERM, 0)
	}
}

// End sends the signal and wants the exit code.
func (p *Process) End(s os.Signal, code int) {
	p.t.Helper()
	p.Signal(s)
	if got := p.Wait(); got != code {
		p.t.Errorf("%q ended with code %d after %v, want %d", p.cmd.Args, got, s, code)
	}
}

// Kill ends it as a crash does.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(unix.SIGKILL)
	p.Wait()
}

// Signal sends the signal, unless it has ended.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatalf("send %v to %q: %v", s, p.cmd.Args, err)
	}
}

// Wait waits for its end and returns the exit code, -1 for a signal.
func (p *Process) Wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(Patience):
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.t.Errorf("%q did not end", p.cmd.Args)
	}
	return p.cmd.ProcessState.ExitCode()
}

// HasEnded tells whether it has.
func (p *Process) HasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// AwaitLog waits until it has written the words to Log.
func (p *Process) AwaitLog(words string) {
	p.t.Helper()
	p.AwaitOutput(&p.Log, words, 1)
}

// AwaitOutput waits until what it writes has the words so often.
func (p *Process) AwaitOutput(o *Output, words string, times int) {
	p.t.Helper()
	Await(p.t, strconv.Quote(words)+" to be written", func() bool {
		hasEnded := p.HasEnded() // Before it is looked at: the last words come before the end.
		if strings.Count(o.String(), words) >= times {
			return true
		}
		if hasEnded {
			p.t.Fatalf("%q ended with code %d and never wrote %q", p.cmd.Args, p.cmd.ProcessState.ExitCode(), words)
		}
		return false
	})
}

// Refused wants the end of a program that cannot start until somebody changes something:
// exit code 2, and in Log one line that begins with the program's name and has the words.
func (p *Process) Refused(program string, words ...string) {
	p.t.Helper()
	if code := p.Wait(); code != 2 {
		p.t.Errorf("exit code %d, want 2", code)
	}
	said := p.Log.String()
	if strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, program+": ") || !strings.HasSuffix(said, "\n") {
		p.t.Errorf("it says %q, want one line that starts with %q", said, program+": ")
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			p.t.Errorf("it says %q, which lacks %q", said, word)
		}
	}
}

// Await waits until the condition is true, which what says in words.
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
