package credential

import (
	"crypto"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The keys of a Secret.
const (
	keyPrivate    = "ssh-privatekey"
	keyKnownHosts = "known_hosts"
	keyToken      = "token"
	keyUsername   = "username"
	keyCA         = "ca.crt"
)

// defaultUsername goes with a token that names none; the forges look at the token alone.
const defaultUsername = "git"

// longestPublic bounds known_hosts and ca.crt, in bytes. Each fetch and each push has them in
// a file meanwhile, in memory that all volumes of a node share. All authorities that a
// distribution trusts, with more beside them, have room in it.
const longestPublic = 256 << 10

// ErrMalformed is wrapped by every error of Parse.
var ErrMalformed = errors.New("the Secret is malformed")

// Kind is what a credential consists of.
type Kind string

// The kinds of credential.
const (
	KindAnonymous Kind = "anonymous"
	KindKey       Kind = "key"
	KindToken     Kind = "token"
)

// Credential is what a Secret grants. It does not change and may be shared. Secrets are
// behind functions, because what prints values walks through fields and pointers and
// passes by an unexported field's String method.
type Credential struct {
	kind     Kind
	username string
	token    func() string
	signer   func() crypto.Signer

	// knownHosts is nil when the Secret has none, which is another thing than an empty one.
	knownHosts *string
	ca         string
}

// Anonymous is the credential of a volume without a Secret.
func Anonymous() *Credential { return &Credential{kind: KindAnonymous} }

// Parse reads a Secret. Its errors wrap ErrMalformed and never hold any of its values.
func Parse[V ~string | ~[]byte](data map[string]V) (*Credential, error) {
	values := make(map[string]string, len(data))
	for key, value := range data {
		// What an editor or `echo` leaves at the end; every other byte counts.
		values[key] = strings.TrimSuffix(string(value), "\n")
	}
	c, err := parse(values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return c, nil
}

func parse(values map[string]string) (*Credential, error) {
	if err := checkLengths(values); err != nil {
		return nil, err
	}
	private, hasPrivate := values[keyPrivate]
	token, hasToken := values[keyToken]
	c := &Credential{}
	switch {
	case hasPrivate && hasToken:
		return nil, fmt.Errorf("it has both %s and %s, a repository takes one of them", keyPrivate, keyToken)
	case hasPrivate:
		signer, err := parsePrivateKey(private)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", keyPrivate, err)
		}
		c.kind, c.signer = KindKey, func() crypto.Signer { return signer }
	case hasToken:
		username, hasUsername := values[keyUsername]
		if !hasUsername {
			username = defaultUsername
		}
		if err := checkToken(username, token); err != nil {
			return nil, err
		}
		c.kind, c.username, c.token = KindToken, username, func() string { return token }
	default:
		return nil, fmt.Errorf("it has neither %s nor %s, but %s", keyPrivate, keyToken, keysOf(values))
	}
	if hosts, found := values[keyKnownHosts]; found {
		if strings.Contains(hosts, privateKeyMark) {
			return nil, fmt.Errorf("%s: %w", keyKnownHosts, errPrivateKey)
		}
		hosts = normalized(hosts)
		c.knownHosts = &hosts
	}
	if ca, found := values[keyCA]; found {
		if err := checkCA(ca); err != nil {
			return nil, fmt.Errorf("%s: %w", keyCA, err)
		}
		c.ca = normalized(ca)
	}
	return c, nil
}

func checkLengths(values map[string]string) error {
	for _, public := range []struct{ key, advice string }{
		{keyKnownHosts, "leave out servers that the volume does not ask"},
		{keyCA, "leave out what the system trusts anyway"},
	} {
		if len(values[public.key]) > longestPublic {
			return fmt.Errorf("%s: it has more than %d KiB; %s", public.key, longestPublic>>10, public.advice)
		}
	}
	return nil
}

// checkToken refuses what git's credential helper protocol, lines of text, or HTTP's
// basic authentication cannot carry: git would send something else.
func checkToken(username, token string) error {
	switch {
	case token == "":
		return fmt.Errorf("%s is empty", keyToken)
	case strings.ContainsAny(token, "\n\r\x00"):
		return fmt.Errorf("%s has a line break or a NUL byte inside, which no server is sent", keyToken)
	case strings.ContainsAny(username, "\n\r\x00:"):
		return fmt.Errorf("%s has a line break, a NUL byte or a colon, which HTTP cannot send", keyUsername)
	}
	return nil
}

// keysOf names what is in a Secret; keys are no secret, and show which were meant.
func keysOf(values map[string]string) string {
	if len(values) == 0 {
		return "nothing"
	}
	const most = 10
	keys := slices.Sorted(maps.Keys(values))
	for i, key := range keys {
		keys[i] = fmt.Sprintf("%.253q", key)
	}
	if len(keys) > most {
		keys = append(keys[:most], "more")
	}
	return strings.Join(keys, ", ")
}

// Kind tells what the credential consists of.
func (c *Credential) Kind() Kind { return c.kind }

// HasKnownHosts tells whether the Secret says which host keys are trusted; if not, the
// first one seen is.
func (c *Credential) HasKnownHosts() bool { return c.knownHosts != nil }

// normalized gives a file of lines the line ends that OpenSSH and TLS libraries read.
func normalized(lines string) string {
	lines = strings.ReplaceAll(lines, "\r\n", "\n")
	lines = strings.TrimSuffix(lines, "\r")
	if lines == "" || strings.HasSuffix(lines, "\n") {
		return lines
	}
	return lines + "\n"
}
