package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// traceDescriptor is the one that curl's trace goes to: the first of exec.Cmd's
// ExtraFiles.
const traceDescriptor = 3

// drainTime bounds how long output is still read after git has ended.
const drainTime = 2 * time.Second

// process is a run's processes, from the start of git to the end of the last of them.
type process struct {
	command     *Command
	run         *run
	link        *link
	said        *words
	environment []string
	mark        string
}

// do starts git, waits for it, and ends what it left. The error says why the run was
// ended before its time, or is a startError.
func (p *process) do(ctx context.Context) (int, error) {
	// The kernel kills the child when the thread that made it ends, and threads that a
	// goroutine has locked may end with it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, trace, err := p.prepare()
	if err != nil {
		return 0, &startError{err}
	}
	defer trace.close()
	if err := cmd.Start(); err != nil {
		return 0, &startError{err}
	}
	trace.started()
	over := make(chan struct{})
	watched := make(chan error, 1)
	go func() { watched <- p.watch(ctx, cmd.Process.Pid, over) }()
	exited(cmd.Process.Pid)
	close(over)
	reason := <-watched
	// The leader is not waited for yet, so that no other group can have its number.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	// Those who left the group may keep its output open, for which Wait waits.
	p.endStrays(cmd.Process.Pid)
	err = cmd.Wait()
	p.reap(cmd.Process.Pid)
	var exit *exec.ExitError
	if reason == nil && err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		reason = fmt.Errorf("read what git prints: %w", err)
	}
	return status(cmd.ProcessState), reason
}

func (p *process) prepare() (*exec.Cmd, *tracePipe, error) {
	bounds := confinement{
		Parent: os.Getpid(), Memory: p.command.settings.Memory, Idle: p.run.idle,
		SSH: p.run.remote != nil && p.run.remote.URL.IsSSH(),
	}
	cmd := &exec.Cmd{
		Path:        p.command.settings.Executable,
		Args:        append([]string{roleGit, bounds.String(), "git"}, p.run.args...),
		Env:         p.environment,
		Dir:         cmp.Or(p.run.work, p.command.home),
		Stdin:       p.run.stdin,
		Stdout:      p.run.stdout,
		Stderr:      p.said,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		WaitDelay:   drainTime,
	}
	switch {
	case p.run.verdicts != nil:
		cmd.Stdout = p.run.verdicts
	case cmd.Stdout == nil:
		cmd.Stdout = p.said
	}
	trace, err := p.trace()
	if err != nil {
		return nil, nil, err
	}
	if trace.write != nil {
		cmd.ExtraFiles = []*os.File{trace.write}
	}
	return cmd, trace, nil
}

// watch ends the group when ctx does, there is no room for what it receives, nothing moves
// any more, neither on the connection nor in the group itself, or a push is not decided on:
// first with SIGTERM, so that git removes what it has begun, then with SIGKILL.
func (p *process) watch(ctx context.Context, group int, over <-chan struct{}) error {
	stall, decision := p.command.settings.Stall, p.command.settings.Decision
	ticker := time.NewTicker(min(time.Second, stall/10))
	defer ticker.Stop()
	var reason error
	own := busy{group: strconv.Itoa(group)}
	for reason == nil {
		select {
		case <-over:
			return nil
		case <-ctx.Done():
			reason = endReason(ctx)
		case <-ticker.C:
			if reason = p.checkRoom(); reason != nil || !p.watched() {
				continue
			}
			if (p.link.silence() >= stall/2 || p.isPush() && p.link.idleness() >= decision/2) && own.goesOn() {
				p.link.alive()
			}
			switch {
			case p.link.silence() >= stall:
				p.link.note(func(f *facts) { f.stalled = true })
				reason = ErrStalled
			case p.isPush() && p.link.idleness() >= decision:
				p.link.note(func(f *facts) { f.undecided = true })
				reason = ErrTimeout
			}
		}
	}
	_ = syscall.Kill(-group, syscall.SIGTERM)
	select {
	case <-over:
	case <-time.After(p.command.settings.Grace):
		_ = syscall.Kill(-group, syscall.SIGKILL)
		<-over
	}
	return reason
}

func (p *process) isPush() bool { return p.run.verdicts != nil }

// watched tells whether what the run receives can be seen to stand still: not from files,
// whose hooks may take their time. By the environment's proxy no byte comes by the link,
// and once the server is asked curl itself watches, which alone sees what keeps a
// connection alive. It does not while the proxy or TLS has yet to answer.
func (p *process) watched() bool {
	remote := p.run.remote
	if remote == nil || remote.URL.IsLocal() {
		return false
	}
	return p.command.proxies.proxy(remote.URL) == "" || !p.link.learned().asking
}

// exited waits until the process has ended, without taking its status.
func exited(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// status is the exit status, or 128 and the signal as shells have it.
func status(state *os.ProcessState) int {
	if state == nil {
		return 255
	}
	if wait, ok := state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal())
	}
	return state.ExitCode()
}

// tracePipe brings curl's trace to the link; its zero value brings nothing.
type tracePipe struct {
	read, write *os.File
	done        chan struct{}
}

func (p *process) trace() (*tracePipe, error) {
	if p.run.remote == nil || !p.run.remote.URL.IsHTTP() {
		return &tracePipe{}, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for the trace: %w", err)
	}
	t := &tracePipe{read: read, write: write, done: make(chan struct{})}
	statuses := &httpStatus{link: p.link}
	go func() {
		defer close(t.done)
		buffer := make([]byte, 8<<10)
		for {
			n, err := read.Read(buffer)
			_, _ = statuses.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	return t, nil
}

// started leaves the children the only ones that write.
func (t *tracePipe) started() {
	if t.write != nil {
		_ = t.write.Close()
	}
}

// close waits for the rest of the trace, which is there once all children have ended.
func (t *tracePipe) close() {
	if t.write == nil {
		return
	}
	_ = t.write.Close()
	_ = t.read.SetReadDeadline(time.Now().Add(drainTime))
	<-t.done
	_ = t.read.Close()
}
