package credential

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"liken.sh/csicommon/errortext"
	"liken.sh/gitvolume/internal/attributes"
)

// Serving says how a credential is lent to the children of one git command.
type Serving struct {
	// Dir is an existing directory of the driver's user, 0700, on any file system; its
	// path is short, since those of sockets end at 107 bytes.
	Dir string
	// Helper is the command line, without quotes, by which git and ssh run a program that
	// calls Helper with the arguments that follow.
	Helper []string
	URL    attributes.URL
	// Hosts keeps the host keys that are trusted at first sight; needed for ssh, unless
	// the Secret has known_hosts.
	Hosts *KnownHosts
	// Bundles keep the certificates of HTTPS; needed for that, if the Secret has ca.crt.
	Bundles *Bundles
	// Given is what people know the credential's known_hosts by; empty: they are those that
	// came with the key.
	Given string
	// Roots are files with the system's certificates, of which the first that is there
	// is used; nil: where distributions keep them.
	Roots []string
}

// Session lends a credential until Close. What it tells about the server counts for the
// last command that used it.
type Session struct {
	credential *Credential
	url        attributes.URL
	hosts      *KnownHosts
	given      string
	dir        string
	sockets    []*socket
	unbundle   func() // Gives up the file with certificates; nil: there is none.

	environment []string
	gitConfig   [][2]string
	sshOptions  []string

	mu        sync.Mutex
	refused   bool
	withheld  string
	login     *login
	presented ssh.PublicKey
	err       error
}

// login is one connection of ssh to the agent.
type login struct{ signed bool }

// The names in a session's directory.
const (
	sessionPrefix  = "session-"
	agentSocket    = "agent"
	helperSocket   = "ask"
	sessionHosts   = "known_hosts"
	publicFileMode = 0o600
)

// Serve lends the credential for one URL. Who calls it has asked Fits before.
func (c *Credential) Serve(serving Serving) (*Session, error) {
	s := &Session{credential: c, url: serving.URL, hosts: serving.Hosts, given: serving.Given}
	if !s.url.IsSSH() && !s.url.IsHTTP() {
		return s, nil
	}
	if s.url.IsSSH() && !c.HasKnownHosts() && s.hosts == nil {
		return nil, errors.New("lend a credential for ssh: there is nowhere to keep host keys")
	}
	if s.url.IsHTTP() && c.ca != "" && serving.Bundles == nil {
		return nil, errors.New("lend a credential for HTTP: there is nowhere to keep certificates")
	}
	if len(serving.Helper) == 0 {
		return nil, errors.New("lend a credential: there is no helper program")
	}
	for _, word := range append([]string{serving.Dir}, serving.Helper...) {
		if err := checkPlain(word); err != nil {
			return nil, fmt.Errorf("lend a credential: %w", err)
		}
	}
	var err error
	if s.dir, err = os.MkdirTemp(serving.Dir, sessionPrefix); err != nil {
		return nil, fmt.Errorf("lend a credential: make a directory for the session: %w", errortext.WithoutPath(err))
	}
	if err := s.open(serving); err != nil {
		s.Close()
		return nil, fmt.Errorf("lend a credential: %w", err)
	}
	return s, nil
}

func (s *Session) open(serving Serving) error {
	if err := s.listen(helperSocket, s.answer); err != nil {
		return err
	}
	command := strings.Join(append(append([]string{}, serving.Helper...), filepath.Join(s.dir, helperSocket)), " ")
	if s.url.IsSSH() {
		return s.openSSH(command)
	}
	// Without these git would ask a person, or a program that the machine names.
	s.environment = []string{"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS="}
	s.gitConfig = [][2]string{
		{"credential.helper", ""}, // forget those of other configuration
		// What git would have be kept, each time that it was let in through the driver's proxy
		// too, is not worth a process.
		{"credential.helper", `!ask() { test "$1" = store || exec ` + command + ` "$1"; }; ask`},
	}
	if s.credential.ca == "" {
		return nil
	}
	roots := serving.Roots
	if roots == nil {
		roots = systemRoots()
	}
	file, unbundle, err := serving.Bundles.take(bundle(roots, s.credential.ca))
	if err != nil {
		return err
	}
	s.unbundle = unbundle
	s.gitConfig = append(s.gitConfig, [2]string{"http.sslCAInfo", file})
	return nil
}

func (s *Session) openSSH(command string) error {
	agentPath, hostsPath := "none", noKnownHosts
	if s.credential.kind == KindKey {
		key, err := newSigner(s.credential.signer())
		if err != nil {
			return err
		}
		if err := s.listen(agentSocket, func(conn net.Conn) { s.serveLogin(key, conn) }); err != nil {
			return err
		}
		agentPath = filepath.Join(s.dir, agentSocket)
	}
	if s.credential.HasKnownHosts() {
		var err error
		if hostsPath, err = s.writeHosts(); err != nil {
			return err
		}
	}
	s.sshOptions = sshOptions(agentPath, hostsPath, command)
	return nil
}

func (s *Session) listen(name string, serve func(net.Conn)) error {
	opened, err := listen(filepath.Join(s.dir, name), serve)
	if err == nil {
		s.sockets = append(s.sockets, opened)
	}
	return err
}

// writeHosts writes the known hosts, which are public. The error is without the path: the
// session's directory has another name each time.
func (s *Session) writeHosts() (string, error) {
	path := filepath.Join(s.dir, sessionHosts)
	if err := os.WriteFile(path, []byte(*s.credential.knownHosts), publicFileMode); err != nil {
		return "", fmt.Errorf("write %q: %w", sessionHosts, errortext.WithoutPath(err))
	}
	return path, nil
}

// serveLogin follows what ssh does with the key: it asks for the list once the host key
// is accepted, and for a signature once the server has said that it knows the key.
func (s *Session) serveLogin(key *signer, conn net.Conn) {
	var this login
	key.serveAgent(conn, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.login = &this
	}, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		this.signed = true
	})
}

// Environment is what the children's environment needs; nothing in it is secret.
func (s *Session) Environment() []string { return s.environment }

// GitConfig is configuration for git's command line; nothing in it is secret.
func (s *Session) GitConfig() [][2]string { return s.gitConfig }

// SSHOptions are arguments of ssh, before its own; none when the URL is not of ssh.
// Every word is plain: a shell reads it as it is, but for the blanks of one, which have
// to be quoted.
func (s *Session) SSHOptions() []string { return s.sshOptions }

// Close takes the credential back: the sockets and files are gone when it returns. A
// second Close does nothing.
func (s *Session) Close() {
	for _, one := range s.sockets {
		one.Close()
	}
	s.sockets = nil
	if s.unbundle != nil {
		s.unbundle()
		s.unbundle = nil
	}
	if s.dir != "" {
		_ = removeSession(s.dir)
		s.dir = ""
	}
}

// RemoveSessions deletes what sessions of an earlier process left in the directory when
// it ended without closing them: sockets, known hosts and certificates.
func RemoveSessions(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("remove the sessions of an earlier process: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.IsDir() && strings.HasPrefix(entry.Name(), sessionPrefix):
			err = errors.Join(err, removeSession(path))
		case entry.Type().IsRegular() && strings.HasPrefix(entry.Name(), bundlePrefix):
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

func removeSession(dir string) error {
	for _, name := range []string{agentSocket, helperSocket, sessionHosts} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	return os.Remove(dir)
}
