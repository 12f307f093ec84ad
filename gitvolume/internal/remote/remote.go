package remote

import (
	"fmt"
	"net/netip"

	"liken.sh/gitvolume/internal/attributes"
)

// Remote is a repository elsewhere, and as whom it is asked.
type Remote struct {
	// URL is where git finds it.
	URL attributes.URL
	// Session serves the credential to git and ssh; nil asks as nobody. Who made it
	// closes it, after the call that it was given to.
	Session Session
	// Permit refuses addresses; nil permits all. Where the environment names a proxy for
	// the host it is asked before git runs, about all addresses that the name has here,
	// and not about the one that the proxy then connects to.
	Permit Permit
	// Limits names what Permit refuses: two Permits that differ have different ones. A
	// fetch is not shared beyond them.
	Limits string
}

// Session is one use of a credential.
type Session interface {
	// Environment is added to that of git. It holds no secret.
	Environment() []string
	// GitConfig is added to git's configuration, as pairs of key and value. It holds no
	// secret.
	GitConfig() [][2]string
	// SSHOptions are put before ssh's other arguments.
	SSHOptions() []string
	// Refused tells whether the server was shown the credential and refused it, or
	// asked for one and there is none.
	Refused() bool
}

// Prover is a Session that knows whether a server has proved who it is.
type Prover interface {
	// Proven tells that the server of the last connection did, and was shown the
	// credential for that.
	Proven() bool
}

// Explainer is a Session that knows more of why a run failed than git says.
type Explainer interface {
	// Explanation is for people; empty if there is none.
	Explanation() string
}

// Redactor is a Session that knows what must not be shown: a server can repeat the
// token that it was sent in what it says.
type Redactor interface {
	// Redact returns the text without any secret of the session.
	Redact(text string) string
}

// Permit tells whether the driver may connect to an address that the host resolved to;
// the error says why not.
type Permit func(host string, address netip.AddrPort) error

// protocols are those that git may speak for the URL. A redirect from http to https is
// followed; the other way it never is.
func protocols(url attributes.URL) ([]string, error) {
	switch url.Scheme {
	case "http":
		return []string{"http", "https"}, nil
	case "https", "ssh", "git", "file":
		return []string{url.Scheme}, nil
	}
	return nil, fmt.Errorf("%q is no URL to give to git", url.String())
}
