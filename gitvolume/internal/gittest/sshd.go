package gittest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds how long an sshd may take until it greets.
const startTimeout = 20 * time.Second

// SSHDOptions say how an sshd is to be. The zero value has one ed25519 host key, lets
// nobody in and listens on 127.0.0.1.
type SSHDOptions struct {
	// Address is where it listens: an address of 127.0.0.0/8.
	Address string
	// HostKeys are private keys in a format that OpenSSH reads, as Key.PEM. None: one
	// ed25519 key made for this server.
	HostKeys []Key
	// AuthorizedKeys are the lines of the authorized_keys file of the user who runs the
	// tests, as Key.Authorized.
	AuthorizedKeys []string
	// ForceCommand runs for every session in place of what the client asks, in the
	// user's shell. Empty: what the client asks.
	ForceCommand string
	// Config holds further lines of sshd_config; of two equal words sshd takes the first,
	// and these come first. The word SetEnv is the server's own.
	Config []string
}

// SSHD is a running sshd, which ends with the test.
type SSHD struct {
	// Host and Port are where it listens.
	Host string
	Port int
	// User is who has to be logged in: sshd without privileges knows only its own user.
	User     string
	HostKeys []Key
	log      string
}

// StartSSHD starts an sshd of the machine's OpenSSH and waits until it greets. It
// works as root and as an ordinary user; where there is no sshd, or the user's shell runs
// no commands, the test is skipped.
func StartSSHD(t testing.TB, options SSHDOptions) *SSHD {
	t.Helper()
	program := sshdProgram(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if shell := shellOf(t, me.Uid); shell == "nologin" || shell == "false" {
		t.Skipf("sshd runs what is asked of it in the shell of the user %s, which is %s and runs nothing", me.Username, shell)
	}
	if options.Address == "" {
		options.Address = "127.0.0.1"
	}
	if len(options.HostKeys) == 0 {
		options.HostKeys = []Key{NewKey(t, "ed25519")}
	}
	dir := t.TempDir()
	s := &SSHD{Host: options.Address, User: me.Username, HostKeys: options.HostKeys, log: filepath.Join(dir, "log")}
	// Between the look for a free port and sshd's own bind another process may take it.
	for range 5 {
		s.Port = freePort(t, options.Address)
		config := filepath.Join(dir, "sshd_config")
		write(t, config, s.config(t, dir, program, options))
		if s.run(t, program, config) {
			return s
		}
	}
	t.Fatalf("sshd does not start; its log:\n%s", s.Log())
	return nil
}

// URL is the repository at the absolute path, as seen by this server's clients.
func (s *SSHD) URL(path string) string {
	return fmt.Sprintf("ssh://%s@%s%s", s.User, net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), path)
}

// Name is how known_hosts writes the server.
func (s *SSHD) Name() string { return fmt.Sprintf("[%s]:%d", s.Host, s.Port) }

// KnownHosts is a known_hosts file with the server's keys of the types ("rsa",
// "ed25519", "ecdsa"); of none: all.
func (s *SSHD) KnownHosts(types ...string) string {
	var b strings.Builder
	for _, key := range s.HostKeys {
		if len(types) == 0 || slices.Contains(types, key.Type) {
			fmt.Fprintf(&b, "%s %s\n", s.Name(), strings.TrimSpace(key.Authorized))
		}
	}
	return b.String()
}

// Log is what the server has logged so far, at DEBUG1.
func (s *SSHD) Log() string {
	content, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(content)
}

// mark is in the environment of all that runs for the server's clients.
func (s *SSHD) mark() string { return "GITTEST_SSHD=" + s.log }

// config writes the key files and returns the text of sshd_config.
func (s *SSHD) config(t testing.TB, dir, program string, options SSHDOptions) string {
	authorized := filepath.Join(dir, "authorized_keys")
	var lines strings.Builder
	for _, line := range options.AuthorizedKeys {
		lines.WriteString(strings.TrimSpace(line) + "\n")
	}
	write(t, authorized, lines.String())
	empty := filepath.Join(dir, "gitconfig")
	write(t, empty, "")

	config := append([]string{}, options.Config...)
	for i, key := range options.HostKeys {
		file := filepath.Join(dir, "host_key_"+strconv.Itoa(i))
		write(t, file, key.PEM)
		config = append(config, "HostKey "+file)
	}
	config = append(config,
		"ListenAddress "+options.Address,
		"Port "+strconv.Itoa(s.Port),
		"PidFile none",
		"AuthorizedKeysFile "+authorized,
		"StrictModes no",
		"PermitRootLogin prohibit-password",
		"PasswordAuthentication no",
		"KbdInteractiveAuthentication no",
		"PermitUserRC no",
		"UsePAM no",
		"UseDNS no",
		"PrintMotd no",
		"LogLevel DEBUG1",
		"MaxStartups 1000",
		"MaxSessions 1000",
		// The user's shell would read files below the user's home, and print what it likes.
		"SetEnv HOME="+dir+" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL="+empty+" "+s.mark(),
	)
	if options.ForceCommand != "" {
		config = append(config, "ForceCommand "+options.ForceCommand)
	}
	// Since 9.8 an sshd turns away an address whose logins fail, which is what some tests
	// do all the time; older ones do not know the word.
	key := filepath.Join(dir, "host_key_0")
	if exec.Command(program, "-t", "-f", os.DevNull, "-h", key, "-o", "PerSourcePenalties=no").Run() == nil {
		config = append(config, "PerSourcePenalties no")
	}
	return strings.Join(config, "\n") + "\n"
}

// run starts the server and tells whether it greets.
func (s *SSHD) run(t testing.TB, program, config string) bool {
	t.Helper()
	cmd := exec.Command(program, "-D", "-f", config, "-E", s.log)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	started := startServer(t, cmd)
	stop := func() {
		started.stop()
		endMarked(s.mark())
	}
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		// A server of another test may have taken the port and greet instead.
		if strings.Contains(s.Log(), "Server listening on ") && s.greets() {
			t.Cleanup(stop)
			return true
		}
		select {
		case <-started.ended:
			stop()
			return false
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	return false
}

func (s *SSHD) greets() bool {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(s.Host, strconv.Itoa(s.Port)), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	greeting := make([]byte, 4)
	n, _ := conn.Read(greeting)
	return n == 4 && string(greeting) == "SSH-"
}

func sshdProgram(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("sshd")
	if err != nil {
		// The path of an ordinary user leaves it out.
		if program, err = exec.LookPath("/usr/sbin/sshd"); err != nil {
			t.Skipf("no sshd on this machine: %v", err)
		}
	}
	if os.Getuid() == 0 {
		// As root, sshd wants its empty directory, which only its service makes.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Skipf("sshd as root needs /run/sshd: %v", err)
		}
	}
	return program
}

// shellOf is the name of the program that is a user's shell; empty if that is not known.
func shellOf(t testing.TB, uid string) string {
	t.Helper()
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(users)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) == 7 && fields[2] == uid {
			return filepath.Base(fields[6])
		}
	}
	return ""
}

func freePort(t testing.TB, address string) int {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func write(t testing.TB, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
