package credential

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// quit tells git to give up instead of asking elsewhere, at last a person.
const quit = "quit=1\n"

// answer serves one question of the helper.
func (s *Session) answer(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(helperTimeout))
	question, err := io.ReadAll(io.LimitReader(conn, maxQuestion))
	if err != nil {
		return
	}
	first, rest, _ := strings.Cut(string(question), "\n")
	words := strings.Fields(first)
	reply := answered
	switch {
	case len(words) == 0:
		reply = declined
	case words[0] == operationHostKey:
		lines, err := s.hostKeys(words[1:])
		if err != nil {
			s.fail(err)
			reply = declined
		} else {
			reply += lines
		}
	case words[0] == operationGet:
		reply += s.give(rest)
	case words[0] == operationErase:
		if s.isOurs(rest) {
			s.refuse()
		}
	}
	_, _ = io.WriteString(conn, reply)
}

// give answers git's "get": the token for the server of the volume's URL, and "give up"
// for every other one, to which a redirect may have led, and after a refusal.
func (s *Session) give(question string) string {
	switch {
	case s.credential.kind != KindToken:
		s.withhold("the server wants one, and there is none")
		return quit
	case !s.isOurs(question):
		s.withhold("a server wants one that the address leads to, and the token is for " + hostPort(s.url) + " alone")
		return quit
	case s.Refused():
		return quit
	}
	return "username=" + s.credential.username + "\npassword=" + s.credential.token() + "\n"
}

// isOurs tells whether git asks about the server of the volume's URL: protocol, host
// and port, and the user if git names one.
func (s *Session) isOurs(question string) bool {
	asked := map[string]string{}
	for text := range strings.Lines(question) {
		key, value, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "=")
		if _, again := asked[key]; again && !strings.HasSuffix(key, "[]") {
			return false
		}
		asked[key] = value
	}
	if user, named := asked["username"]; named && user != s.credential.username {
		return false
	}
	scheme, host := asked["protocol"], asked["host"]
	if !s.url.IsHTTP() || scheme != s.url.Scheme {
		return false
	}
	port := strconv.Itoa(defaultPort(scheme))
	if name, number, err := net.SplitHostPort(host); err == nil {
		host, port = name, number
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.TrimSuffix(strings.ToLower(host), ".") == strings.TrimSuffix(strings.ToLower(s.url.Host), ".") &&
		port == strconv.Itoa(s.url.Port)
}

func defaultPort(scheme string) int {
	if scheme == "http" {
		return 80
	}
	return 443
}

// hostKeys answers ssh's KnownHostsCommand, which it runs first for the order in which
// to ask for kinds of keys and then with the key that the server has. It returns the
// lines that ssh is to trust beyond the Secret's known_hosts: none if it has them.
func (s *Session) hostKeys(words []string) (string, error) {
	if len(words) != 3 || !s.url.IsSSH() {
		return "", fmt.Errorf("ssh asks for host keys in words that are not understood: %q", words)
	}
	name, presented := words[1], ssh.PublicKey(nil)
	if words[2] != "NONE" {
		blob, err := base64.StdEncoding.DecodeString(words[2])
		if err == nil {
			presented, err = ssh.ParsePublicKey(blob)
		}
		if err != nil {
			return "", fmt.Errorf("the host key of %s cannot be read: %w", hostPort(s.url), err)
		}
		// ssh looks for the plain key of a certificate whose authority it does not know.
		if certificate, ok := presented.(*ssh.Certificate); ok {
			presented = certificate.Key
		}
		s.present(presented)
	}
	if s.credential.HasKnownHosts() {
		return "", nil
	}
	var keys []ssh.PublicKey
	var err error
	if presented == nil {
		keys, err = s.hosts.trusted(serverName(s.url))
	} else {
		keys, err = s.hosts.firstSeen(serverName(s.url), presented)
	}
	var lines strings.Builder
	for _, key := range keys {
		lines.WriteString(line(name, key))
	}
	return lines.String(), err
}
