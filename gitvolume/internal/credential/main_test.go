package credential

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
)

const helperWord = "credential-helper"

// quickRace has helpers that are built with the race detector end at once, and not a
// second after their work.
const quickRace = "GORACE=atexit_sleep_ms=0"

// TestMain lets git and ssh run the test binary as the helper, as they do the driver.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == helperWord {
		os.Exit(Helper(os.Args[2:], os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

func helperCommand(t testing.TB) []string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{program, helperWord}
}

// shortDir is a directory in which the path of a socket fits.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func parseURL(t testing.TB, text string) attributes.URL {
	t.Helper()
	u, err := attributes.ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func mustParse(t testing.TB, data map[string]string) *Credential {
	t.Helper()
	c, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serve(t testing.TB, c *Credential, url string, hosts *KnownHosts) *Session {
	t.Helper()
	s, err := c.Serve(Serving{Dir: shortDir(t), Helper: helperCommand(t), URL: parseURL(t, url), Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func openHosts(t testing.TB) *KnownHosts {
	t.Helper()
	hosts, err := OpenKnownHosts(filepath.Join(t.TempDir(), "ssh"))
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

// connect runs ssh with a session's options and returns what it prints.
func connect(t testing.TB, s *Session, server *gittest.SSHD) (string, error) {
	t.Helper()
	cmd := sshCommand(t, s, server, "echo connected")
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func sshCommand(t testing.TB, s *Session, server *gittest.SSHD, remote string) *exec.Cmd {
	t.Helper()
	u := parseURL(t, server.URL("/r"))
	args := append([]string{}, s.SSHOptions()...)
	args = append(args, "-p", strings.TrimPrefix(hostPort(u), u.Host+":"), u.User+"@"+u.Host, remote)
	cmd := exec.CommandContext(t.Context(), "ssh", args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), quickRace}, s.Environment()...)
	return cmd
}

func until(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen in 30 s")
		}
	}
}
