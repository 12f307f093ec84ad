package process

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// KillAt is called at each step of something; at the n-th, from 1, it kills its own process,
// as a crash would right before that step.
func KillAt(n int) (step func()) {
	steps := 0
	return func() {
		if steps++; steps == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// WasKilled runs a command to its end, which is KillAt's or an exit with 0: then it had fewer
// steps than that. Anything else fails t, with the end of its environment, which says what
// it was to do.
func WasKilled(t testing.TB, cmd *exec.Cmd) bool {
	t.Helper()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return true
	}
	t.Fatalf("%q with %q: %v\n%s", cmd.Args, cmd.Env[max(0, len(cmd.Env)-5):], err, out)
	return false
}
