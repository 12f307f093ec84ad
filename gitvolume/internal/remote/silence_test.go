package remote

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestWorkIsNoSilence has git compute for longer than Stall while nothing comes, as it
// does when it looks through what a large fetch has brought.
func TestWorkIsNoSilence(t *testing.T) {
	over := filepath.Join(t.TempDir(), "over")
	c := newCommand(t, stallFor(ErrStalled), withGit(t, "(sleep 4; touch "+over+") & while ! test -e "+over+"; do :; done"))
	_, err := c.List(t.Context(), at(t, "git://"+gittest.Silent(t).Address+"/r"), "main")
	check(t, err)
}

// TestKilledSSH: nothing is known of a remote whose ssh was killed, least of all that it is
// another one.
func TestKilledSSH(t *testing.T) {
	c, remote := newCommand(t), sleeping(t)
	ended := make(chan error, 1)
	go func() {
		_, err := c.List(t.Context(), remote, "main")
		ended <- err
	}()
	session, proves := remote.Session.(Prover)
	if !proves {
		t.Fatal("the session does not tell who has logged in")
	}
	until(t, "ssh has logged in", session.Proven)
	for _, pid := range pidsOf(c, "ssh\x00") {
		check(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	wantError(t, <-ended, ErrFailed)
}

// pidsOf are the processes of runs of the Command whose arguments begin so.
func pidsOf(c *Command, line string) []int {
	var found []int
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environment, _ := os.ReadFile(file)
		arguments, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && strings.HasPrefix(string(arguments), line) && strings.Contains(string(environment), "GIT_CONFIG_GLOBAL="+c.config+"\x00") {
			found = append(found, pid)
		}
	}
	return found
}

// TestAServerThatSleepsOverSSH: that sshd lives is no byte of git's.
func TestAServerThatSleepsOverSSH(t *testing.T) {
	c := newCommand(t, stallFor(ErrStalled))
	_, err := c.List(t.Context(), sleeping(t), "main")
	wantError(t, err, ErrStalled)
}
