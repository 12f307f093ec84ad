package process_test

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/process"
)

func shell(script string) *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }

func TestAProcessIsStopped(t *testing.T) {
	p := process.Start(t, shell(`trap 'echo going; exit 0' TERM; echo here; while :; do sleep 0.05; done`))
	p.AwaitLog("here")
	if p.HasEnded() {
		t.Error("it has ended by itself")
	}
	p.Stop()
	p.Stop()
	if !p.HasEnded() || p.Wait() != 0 {
		t.Errorf("it has ended: %t, with code %d", p.HasEnded(), p.Wait())
	}
	p.AwaitLog("going") // Its last words, though it is over.
}

func TestAProcessIsKilled(t *testing.T) {
	p := process.Start(t, shell(`trap '' TERM; echo here; while :; do sleep 0.05; done`))
	p.AwaitLog("here")
	p.Kill()
	if code := p.Wait(); code != -1 {
		t.Errorf("exit code %d, want -1", code)
	}
	p.Signal(unix.SIGTERM) // Nobody is there.
}

func TestAProcessIsRefused(t *testing.T) {
	process.Start(t, shell(`echo "tool: --flag is odd" >&2; exit 2`)).Refused("tool", "--flag", "odd")
}

func TestAStreamOfTheCallersOwn(t *testing.T) {
	var out process.Output
	cmd := shell(`echo out; echo log >&2; echo out`)
	cmd.Stdout = &out
	p := process.Start(t, cmd)
	p.AwaitOutput(&out, "out\n", 2)
	p.AwaitLog("log\n")
	if p.Wait() != 0 || strings.Contains(p.Log.String(), "out") {
		t.Errorf("the log has %q", p.Log.String())
	}
	out.Reset()
	if out.String() != "" {
		t.Errorf("there is still %q", out.String())
	}
}

// Whoever leaves a process behind does not leave it running.
func TestAProcessIsGoneWithItsTest(t *testing.T) {
	var left *process.Process
	t.Run("one that leaves it", func(t *testing.T) {
		left = process.Start(t, shell(`exec sleep 3600`))
	})
	if !left.HasEnded() {
		t.Error("it still runs")
	}
}

func TestWasKilled(t *testing.T) {
	if process.WasKilled(t, shell("exit 0")) {
		t.Error("one that ended counts as killed")
	}
	if !process.WasKilled(t, shell("kill -KILL $$")) {
		t.Error("one that was killed counts as ended")
	}
}

func TestProcessorTime(t *testing.T) {
	p := process.Start(t, shell(`while :; do :; done`))
	process.Await(t, "the process to have worked", func() bool { return p.ProcessorTime() > 0 })
}
