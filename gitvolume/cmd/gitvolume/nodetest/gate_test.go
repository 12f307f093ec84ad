package nodetest

import (
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/gate"
	"liken.sh/csicommon/csitest/process"
)

// steps are the calls that change what outlives a process, and those that begin something
// elsewhere.
func steps() []uint32 {
	calls := gate.Calls(gate.Makes, gate.Removes, gate.Begins)
	return append(calls,
		unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNCFS, unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHOWN,
		unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT, unix.SYS_UMOUNT2)
}

// killer stops a process and its children before each step, and kills the process at one of
// them.
type killer struct {
	gate *gate.Gate

	mu sync.Mutex
	// passed is how many steps there were since the last reset.
	passed  int
	kills   func(passed int) bool // nil: it never does.
	killed  string                // The step.
	victim  *process.Process
	callers map[int]bool // Threads that made a step, since the last reset.
}

// newGate has the command, which is of node.command, go through a gate when it starts.
func newGate(t testing.TB, cmd *exec.Cmd) *killer {
	t.Helper()
	return newGateOf(t, cmd, steps()...)
}

// newGateOf is newGate for these calls alone.
func newGateOf(t testing.TB, cmd *exec.Cmd, calls ...uint32) *killer {
	t.Helper()
	k := &killer{gate: gate.New(t, cmd, calls...), callers: map[int]bool{}}
	k.gate.Set(k.step)
	return k
}

// reset counts the steps anew, and has the process be killed before the first at which that
// says so; nil: before none.
func (k *killer) reset(victim *process.Process, kills func(passed int) bool) (passed int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	passed = k.passed
	k.victim, k.passed, k.kills = victim, 0, kills
	clear(k.callers)
	return passed
}

// count is how many threads made a step since the last reset.
func (k *killer) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.callers)
}

// death is the step at which the process was killed; empty: it was not.
func (k *killer) death() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.killed
}

func (k *killer) step(c gate.Call) syscall.Errno {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.passed++
	k.callers[c.Thread] = true
	if k.killed != "" || k.kills == nil || !k.kills(k.passed) {
		return 0
	}
	k.killed = c.Name()
	if !c.IsOf(k.victim.Pid()) {
		k.killed += " of a child"
	}
	k.victim.Signal(unix.SIGKILL)
	return 0
}
