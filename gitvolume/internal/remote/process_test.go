package remote

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/gittest"
)

// withGit has the Command run a script in git's place.
func withGit(t *testing.T, script string) func(*Settings) {
	t.Helper()
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	return func(s *Settings) { s.Environment = []string{"PATH=" + dir + ":" + os.Getenv("PATH")} }
}

// TestConfined looks from inside at what a run's processes may do.
func TestConfined(t *testing.T) {
	const memory = 300 << 20
	c := newCommand(t, withGit(t, "cat /proc/self/status /proc/self/limits; nice; env"), func(s *Settings) {
		s.Memory = memory
		s.Environment = append(s.Environment, "SECRET=1", "GIT_SSH_COMMAND=sh", "LD_PRELOAD=/x", "HTTPS_PROXY=http://p")
	})
	var output bytes.Buffer
	_, err := c.do(t.Context(), run{args: []string{"x"}, idle: true, stdout: &output})
	check(t, err)
	for _, want := range []string{
		"NoNewPrivs:\t1", "CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "CapAmb:\t0000000000000000",
		"\n19\n", "HOME=" + c.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C",
	} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("there is no %q in\n%s", want, output.String())
		}
	}
	if os.Geteuid() == 0 && !strings.Contains(output.String(), "CapBnd:\t0000000000000000") {
		t.Error("capabilities are left in the bounding set")
	}
	for _, row := range []struct{ name, want string }{{"Max core file size", "0"}, {"Max data size", strconv.Itoa(memory)}} {
		_, rest, _ := strings.Cut(output.String(), row.name)
		if fields := strings.Fields(rest); len(fields) < 2 || fields[0] != row.want || fields[1] != row.want {
			t.Errorf("%s is %.40q, want %s", row.name, rest, row.want)
		}
	}
	for _, name := range []string{"SECRET", "GIT_SSH_COMMAND", "LD_PRELOAD", "HTTPS_PROXY"} {
		if strings.Contains(output.String(), "\n"+name+"=") {
			t.Errorf("the driver's variable %s is handed on", name)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	c := newCommand(t, withGit(t, "exec dd if=/dev/zero of=/dev/null bs=256M count=1"), func(s *Settings) { s.Memory = 128 << 20 })
	_, err := c.do(t.Context(), run{args: []string{"x"}})
	wantError(t, err, ErrFailed)
}

// TestNothingOfTheMachine: hooks, aliases and configuration of the repository, which a
// hostile process could have left there, run nothing.
func TestNothingOfTheMachine(t *testing.T) {
	b, store := gittest.NewBare(t), gittest.NewBare(t)
	b.Grow("main", "f", "1")
	mark := filepath.Join(t.TempDir(), "mark")
	for _, hook := range []string{"reference-transaction", "post-checkout", "pre-push", "pre-auto-gc", "post-rewrite"} {
		store.Hook(hook, "touch "+mark)
	}
	for _, pair := range [][2]string{
		{"core.hooksPath", filepath.Join(store.Dir, "hooks")}, {"core.fsmonitor", "touch " + mark}, {"core.sshCommand", "touch " + mark},
		{"core.askPass", "touch " + mark}, {"credential.helper", "!touch " + mark}, {"core.gitProxy", "touch " + mark},
		{"protocol.ext.allow", "always"}, {"gc.auto", "1"},
	} {
		store.Git("config", pair[0], pair[1])
	}
	for _, start := range kinds() {
		c, remote := newCommand(t), start(t, b)
		_, err := c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
		check(t, err)
		tip := store.Commit(map[string]string{"f": "2"}, store.Tip("refs/x/1"))
		_, err = c.Push(t.Context(), Push{Dir: store.Dir, Remote: remote, Branch: Update{
			Ref: "refs/heads/main", Tip: id(t, tip), Expected: id(t, store.Tip("refs/x/1")),
		}})
		check(t, err)
		check(t, c.GC(t.Context(), store.Dir))
		if _, err := os.Stat(mark); err == nil {
			t.Fatal("something of the repository was run")
		}
	}
}

// hanging are servers in the middle of something, by the protocol that reaches them.
func hanging(t *testing.T) map[string]Remote {
	t.Helper()
	silent := gittest.Silent(t)
	return map[string]Remote{
		"http": at(t, "http://"+silent.Address+"/r"),
		"ssh":  sleeping(t),
		"git": speaks(t, func(conn net.Conn) {
			_, _ = io.WriteString(conn, gittest.Advertisement("side-band-64k", someID+" refs/heads/main"))
			_, _ = gittest.ReadPacket(conn)
			_, _ = io.WriteString(conn, gittest.Packet("NAK\n")+gittest.Packet("\x01PACK\x00\x00\x00\x02\x00\x00\x00\x09\x95"))
			_, _ = io.Copy(io.Discard, conn)
		}),
	}
}

// sleeping is a server that lets in and then does nothing.
func sleeping(t *testing.T) Remote {
	t.Helper()
	key := gittest.NewKey(t, "ed25519")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}, ForceCommand: "sleep 600"})
	return lend(t, server.URL("/r"), map[string]string{"ssh-privatekey": key.PEM, "known_hosts": server.KnownHosts()})
}

func TestCancelled(t *testing.T) {
	for name, remote := range hanging(t) {
		t.Run(name, func(t *testing.T) {
			c, store := newCommand(t), gittest.NewBare(t)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := c.Fetch(ctx, Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
				ended <- err
			}()
			helper := map[string]string{"http": "git-remote-http ", "ssh": "git-upload-pack", "git": "index-pack"}[name]
			until(t, "git has begun", func() bool {
				return slices.ContainsFunc(ofCommand(c), func(line string) bool { return strings.Contains(line, helper) }) ||
					name == "git" && len(unfinished(t, store.Dir)) > 0
			})
			cancel()
			select {
			case err := <-ended:
				wantError(t, err, context.Canceled)
				wantWords(t, err, "it was called off")
			case <-time.After(20 * time.Second):
				t.Fatal("it does not end")
			}
			if left := ofCommand(c); len(left) > 0 {
				t.Errorf("left running: %q", left)
			}
			if left := unfinished(t, store.Dir); len(left) > 0 {
				t.Errorf("left over: %q", left)
			}
			store.Git("fsck")
			if zombies := zombies(t); len(zombies) > 0 {
				t.Errorf("nobody waited for %q", zombies)
			}
		})
	}
}

// zombies are children of this process that have ended and were not waited for, aside
// from those of servers, which have sessions of their own and are ended with the test.
func zombies(t *testing.T) []string {
	t.Helper()
	var found []string
	session, err := unix.Getsid(0)
	check(t, err)
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		content, _ := os.ReadFile(file)
		fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
		if len(fields) > 3 && fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) && fields[3] == strconv.Itoa(session) {
			found = append(found, string(content))
		}
	}
	return found
}

// TestStubborn has processes that do not want to end, in the group and out of it.
func TestStubborn(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	for name, script := range map[string]string{
		"ignores SIGTERM":     `trap "" TERM; touch ` + ready + `; while :; do sleep 1; done`,
		"left the group":      `setsid sh -c "touch ` + ready + `; sleep 600" & sleep 600`,
		"was left by git":     `setsid sh -c "sleep 600 & touch ` + ready + `; exit" & while ! test -f ` + ready + `; do sleep 0.1; done; exit 3`,
		"a child of a child ": `setsid sh -c "setsid sleep 600 & touch ` + ready + `; sleep 600" & sleep 600`,
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(ready)
			c := newCommand(t, withGit(t, script), func(s *Settings) { s.Grace = 300 * time.Millisecond })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				_, err := c.do(ctx, run{args: []string{"x"}})
				ended <- err
			}()
			until(t, "the script has begun", func() bool { _, err := os.Stat(ready); return err == nil })
			if name != "was left by git" {
				cancel()
			}
			if err := <-ended; err == nil {
				t.Error("it succeeds")
			}
			if left := ofCommand(c); len(left) > 0 {
				t.Errorf("left running: %q", left)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := newCommand(t).List(ctx, at(t, "http://"+gittest.Silent(t).Address+"/r"), "main")
	wantError(t, err, ErrTimeout)
	wantError(t, err, context.DeadlineExceeded)
	wantWords(t, err, "takes too long: its time is over")
}

// wantWords fails unless the error says it, and does not say it in Go's words.
func wantWords(t *testing.T, err error, words string) {
	t.Helper()
	if !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "context") {
		t.Errorf("it says %q, want %q in it", err, words)
	}
}

const driverWord = "a-driver-to-be-killed"

// driver is a process that lists a remote until it is killed.
func driver(args []string) {
	executable, err := os.Executable()
	if err != nil {
		os.Exit(3)
	}
	c, err := New(Settings{Executable: executable, Directory: args[0], Environment: os.Environ()})
	if err != nil {
		os.Exit(4)
	}
	url := at(&testing.T{}, args[1])
	_, _ = c.List(context.Background(), url, "main")
	os.Exit(5)
}

// TestKilledDriver leaves nothing running and nothing that disturbs the next one.
func TestKilledDriver(t *testing.T) {
	for _, start := range []string{"http://", "ssh://git@", "git://"} {
		t.Run(start, func(t *testing.T) {
			c := newCommand(t)
			executable, err := os.Executable()
			check(t, err)
			silent := gittest.Silent(t)
			cmd := exec.Command(executable, driverWord, c.settings.Directory, start+silent.Address+"/r")
			check(t, cmd.Start())
			until(t, "git is connected", func() bool { return silent.Accepted() > 0 })
			check(t, cmd.Process.Signal(syscall.SIGKILL))
			_ = cmd.Wait()
			until(t, "its children end", func() bool { return len(ofCommand(c)) == 0 })
			_, err = New(c.settings)
			check(t, err)
			reapOrphans(t)
		})
	}
}

// TestKilledDriverEndsGit has a git that would not notice by itself.
func TestKilledDriverEndsGit(t *testing.T) {
	c := newCommand(t)
	executable, err := os.Executable()
	check(t, err)
	cmd := exec.Command(executable, driverWord, c.settings.Directory, "https://h.invalid/r")
	var s Settings
	withGit(t, "exec sleep 600")(&s)
	cmd.Env = s.Environment
	check(t, cmd.Start())
	until(t, "git runs", func() bool {
		return slices.ContainsFunc(ofCommand(c), func(line string) bool { return strings.HasPrefix(line, "sleep 600") })
	})
	check(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	until(t, "git ends", func() bool { return len(ofCommand(c)) == 0 })
	_, err = New(c.settings)
	check(t, err)
	reapOrphans(t)
}

// TestNewEndsWhatAKilledDriverLeft: the kernel ends only the driver's own children.
func TestNewEndsWhatAKilledDriverLeft(t *testing.T) {
	for name, row := range map[string]struct {
		git  string
		left string
	}{
		"git-remote-https, to a proxy": {"", "remote-https"},
		"pack-objects of a gc":         {"sleep 600 & wait", "sleep 600"},
		"one of a session of its own":  {"setsid sleep 600 & wait", "sleep 600"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t)
			executable, err := os.Executable()
			check(t, err)
			silent := gittest.Silent(t)
			s := Settings{Environment: []string{"PATH=" + os.Getenv("PATH")}}
			if row.git != "" {
				withGit(t, row.git)(&s)
			}
			cmd := exec.Command(executable, driverWord, c.settings.Directory, "https://h.invalid/r")
			cmd.Env = append(s.Environment, "https_proxy=http://"+silent.Address)
			check(t, cmd.Start())
			left := func() bool {
				return slices.ContainsFunc(ofCommand(c), func(line string) bool { return strings.Contains(line, row.left) })
			}
			// One that has yet to connect would miss the driver, and end.
			until(t, "git's helper is at work", func() bool {
				return left() && (row.git != "" || silent.Accepted() > 0)
			})
			check(t, cmd.Process.Signal(syscall.SIGKILL))
			_ = cmd.Wait()
			if !left() {
				t.Fatal("nothing outlives the driver, so this tests nothing")
			}
			_, err = New(c.settings)
			check(t, err)
			if still := ofCommand(c); len(still) > 0 {
				t.Errorf("still there: %q", still)
			}
			reapOrphans(t)
		})
	}
}

// reapOrphans waits for what fell to this process when a driver below it was killed.
func reapOrphans(t *testing.T) {
	t.Helper()
	for _, zombie := range zombies(t) {
		pid, err := strconv.Atoi(strings.Fields(zombie)[0])
		check(t, err)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
}

func TestSettings(t *testing.T) {
	executable, err := os.Executable()
	check(t, err)
	for name, s := range map[string]Settings{
		"too long for sockets":  {Executable: executable, Directory: "/tmp/" + strings.Repeat("x", longestDirectory)},
		"a relative directory":  {Executable: executable, Directory: "x"},
		"a relative executable": {Executable: "x", Directory: "/tmp/x"},
	} {
		if _, err := New(s); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

// TestNoURL: what is no URL of a scheme that is served reaches no git.
func TestNoURL(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	c := newCommand(t, withGit(t, "touch "+mark))
	ftp := Remote{}
	ftp.URL.Scheme = "ftp"
	for _, remote := range []Remote{{}, ftp} {
		if _, err := c.List(t.Context(), remote, "main"); err == nil {
			t.Errorf("%+v is listed", remote.URL)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("git was run")
	}
}
