package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestSSHDServes(t *testing.T) {
	client := NewKey(t, "ecdsa")
	for _, force := range []string{"", "echo forced $GIT_CONFIG_NOSYSTEM"} {
		server := StartSSHD(t, SSHDOptions{
			Address:        "127.0.0.2",
			HostKeys:       []Key{NewKey(t, "rsa"), NewKey(t, "ed25519")},
			AuthorizedKeys: []string{client.Authorized},
			ForceCommand:   force,
		})
		want := "forced 1"
		if force == "" {
			want = "asked"
		}
		output, err := run(t, server, client, "echo asked")
		if err != nil || strings.TrimSpace(output) != want {
			t.Errorf("with the forced command %q: %q, %v; the server's log:\n%s", force, output, err, server.Log())
		}
		if output, err := run(t, server, NewKey(t, "ed25519"), "echo asked"); err == nil {
			t.Errorf("a key that is not authorized gets %q", output)
		}
	}
}

func TestSSHDReadsNothingOfTheUsers(t *testing.T) {
	client := NewKey(t, "ed25519")
	server := StartSSHD(t, SSHDOptions{AuthorizedKeys: []string{client.Authorized}})
	home, err := run(t, server, client, "cd && pwd && ls -a")
	if err != nil || !strings.Contains(home, "sshd_config") || strings.Contains(home, ".bashrc") {
		t.Errorf("a session's home: %v, %s", err, home)
	}
}

func TestSSHDLeavesNoSessionBehind(t *testing.T) {
	client := NewKey(t, "ed25519")
	mark := filepath.Join(t.TempDir(), "pid")
	t.Run("server", func(t *testing.T) {
		server := StartSSHD(t, SSHDOptions{AuthorizedKeys: []string{client.Authorized}})
		cmd := command(t, server, client, "echo $$ >"+mark+"; exec sleep 600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() }) // the client goes first, and leaves the command behind
		until(t, func() bool { content, _ := os.ReadFile(mark); return strings.HasSuffix(string(content), "\n") })
	})
	content, _ := os.ReadFile(mark)
	pid, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		return err != nil || !strings.Contains(string(line), "sleep")
	})
}

func run(t *testing.T, server *SSHD, client Key, remote string) (string, error) {
	output, err := command(t, server, client, remote).CombinedOutput()
	return string(output), err
}

func command(t *testing.T, server *SSHD, client Key, remote string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "known_hosts"), server.KnownHosts("ed25519"))
	write(t, filepath.Join(dir, "key"), client.PEM)
	cmd := exec.CommandContext(t.Context(), "ssh", "-F", os.DevNull, "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
		"-o", "UserKnownHostsFile="+filepath.Join(dir, "known_hosts"), "-i", filepath.Join(dir, "key"),
		"-p", strconv.Itoa(server.Port), server.User+"@"+server.Host, remote)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	return cmd
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen in 20 s")
		}
	}
}
