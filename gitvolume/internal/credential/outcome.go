package credential

import (
	"fmt"

	"golang.org/x/crypto/ssh"
)

// Refused tells whether the server was shown the credential and refused it, or wanted
// one where there is none. Over ssh: the host key was accepted, the key was offered, and
// the server did not want it signed for. It counts only if the command failed.
func (s *Session) Refused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused || s.login != nil && !s.login.signed
}

// Proven tells whether the server of the last connection of ssh proved who it is and was
// then given a signature.
func (s *Session) Proven() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.login != nil && s.login.signed
}

// Explanation is what the session knows about why a command failed, for the error's
// text, beyond the words of git and ssh; empty if it knows nothing. It counts only if the
// command failed.
func (s *Session) Explanation() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err.Error()
	case s.withheld != "":
		return s.withheld
	case s.presented != nil && s.login == nil && s.credential.kind == KindKey:
		return fmt.Sprintf("the host key that %s presents is %s %s, which %s",
			hostPort(s.url), s.presented.Type(), ssh.FingerprintSHA256(s.presented), s.distrust())
	}
	return ""
}

func (s *Session) distrust() string {
	switch {
	case !s.credential.HasKnownHosts():
		return "is not the one first seen; if the server was given another on purpose, delete its line from " + s.hosts.path()
	case s.given != "":
		return s.given + " does not trust"
	}
	return "the known_hosts that came with the key does not trust"
}

// withhold is refuse for a server that is not even shown a credential, and says why.
func (s *Session) withhold(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.withheld = true, why
}

func (s *Session) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// fail keeps the first error of the driver's own.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// present takes note of the server's key; a login that follows is of this connection.
func (s *Session) present(key ssh.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.presented, s.login = key, nil
}
