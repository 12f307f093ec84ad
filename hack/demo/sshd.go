package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// server is an OpenSSH server on loopback that lets one key in.
type server struct {
	process *plugin
	address string
	user    string
	// key is the file of the private key, hosts that of the server's own public one.
	key, hosts string
}

// startServer starts a server with its own host key, below dir.
func startServer(ctx context.Context, dir string) (*server, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	s := &server{user: me.Username, key: filepath.Join(dir, "id"), hosts: filepath.Join(dir, "known_hosts")}
	for _, file := range []string{s.key, filepath.Join(dir, "host")} {
		if err := makeKey(ctx, file); err != nil {
			return nil, err
		}
	}
	// Between the look for a free port and the server's own bind another process may take it.
	for range 5 {
		if err = s.try(ctx, dir); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("start sshd: %w", err)
}

func makeKey(ctx context.Context, file string) error {
	if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file).CombinedOutput(); err != nil {
		return fmt.Errorf("make a key: %w: %s", err, out)
	}
	return nil
}

func (s *server) try(ctx context.Context, dir string) (err error) {
	if s.address, err = freeAddress(); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return err
	}
	public, err := os.ReadFile(filepath.Join(dir, "host.pub"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.hosts, fmt.Appendf(nil, "[%s]:%s %s", host, port, public), 0o600); err != nil {
		return err
	}
	config := filepath.Join(dir, "sshd_config")
	lines := []string{
		"ListenAddress " + host, "Port " + port, "PidFile none", "UsePAM no", "StrictModes no",
		"HostKey " + filepath.Join(dir, "host"), "AuthorizedKeysFile " + filepath.Join(dir, "id.pub"),
		"PermitRootLogin prohibit-password", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		// What a shell of this user reads at home is not part of the story.
		"SetEnv HOME=" + dir + " GIT_CONFIG_NOSYSTEM=1",
	}
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	if s.process, err = startProcess(exec.Command(sshdProgram(), "-D", "-e", "-f", config)); err != nil {
		return err
	}
	if err := s.process.awaitLine(ctx, "Server listening on "); err != nil {
		return s.process.abandon(err)
	}
	return s.greets(ctx)
}

// greets waits until it answers.
func (s *server) greets(ctx context.Context) error {
	for {
		connection, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", s.address)
		if err == nil {
			return connection.Close()
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(askEvery):
		}
	}
}

// sshdProgram is the server's path, which the path of an ordinary user leaves out.
func sshdProgram() string {
	if program, err := exec.LookPath("sshd"); err == nil {
		return program
	}
	return "/usr/sbin/sshd"
}

// url is a repository's address on the server.
func (s *server) url(path string) string { return "ssh://" + s.user + "@" + s.address + path }

// letsIn tells whether this process can log somebody in with a server of its own: in a
// namespace of an ordinary user, which has one group, sshd cannot.
func letsIn() bool {
	text, err := os.ReadFile("/proc/self/setgroups")
	return err != nil || strings.TrimSpace(string(text)) == "allow"
}
