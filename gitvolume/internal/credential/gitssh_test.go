package credential

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestGitOverSSH gives git the options as GIT_SSH_COMMAND, which a shell reads.
func TestGitOverSSH(t *testing.T) {
	client := gittest.NewKey(t, "rsa")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{client.Authorized}})
	repository := filepath.Join(t.TempDir(), "r.git")
	s := serve(t, mustParse(t, map[string]string{"ssh-privatekey": client.PEM}), server.URL(repository), openHosts(t))
	git := func(args ...string) *exec.Cmd {
		cmd := gitCommand(t, s, args...)
		command := []string{"ssh"}
		for _, option := range s.SSHOptions() {
			command = append(command, "'"+option+"'")
		}
		cmd.Env = append(cmd.Env, "GIT_SSH_COMMAND="+strings.Join(command, " "))
		return cmd
	}
	if output, err := git("init", "-q", "--bare", repository).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if output, err := git("ls-remote", server.URL(repository)).CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("an empty repository: %v, %s, %s", err, output, s.Explanation())
	}
	// The key is accepted, the repository is not there: no refusal of the credential.
	if output, err := git("ls-remote", server.URL(repository+"-not")).CombinedOutput(); err == nil || s.Refused() || s.Explanation() != "" {
		t.Errorf("no repository: %v, refused %v, %q, %s", err, s.Refused(), s.Explanation(), output)
	}
}

// TestSSHKeepsNothingAlive: an sshd that answers for a git which hangs behind it would keep
// a connection from ever being silent.
func TestSSHKeepsNothingAlive(t *testing.T) {
	s := serve(t, mustParse(t, map[string]string{"ssh-privatekey": gittest.NewKey(t, "ed25519").PEM}), "ssh://git@h/r", openHosts(t))
	output, err := exec.CommandContext(t.Context(), "ssh", append(slices.Clone(s.SSHOptions()), "-G", "h")...).Output()
	if err != nil || !strings.Contains(string(output), "\nserveraliveinterval 0\n") {
		t.Errorf("%v:\n%s", err, output)
	}
}
