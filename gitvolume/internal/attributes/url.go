package attributes

import (
	"net/netip"
	"strings"
)

// The schemes that are served. An address like "user@host:path" has the scheme ssh, a
// path on this machine the scheme file.
const (
	schemeSSH   = "ssh"
	schemeHTTPS = "https"
	schemeHTTP  = "http"
	schemeGit   = "git"
	schemeFile  = "file"
)

// URL is the address of a repository, read as git reads it. The zero URL is none;
// others come from ParseURL alone.
type URL struct {
	// Scheme is "ssh", "https", "http", "git" or "file".
	Scheme string
	// User is who logs in, of ssh alone; empty: none is named.
	User string
	// Host is a name or an address without brackets, as it was written. Empty for files.
	Host string
	// Port is the scheme's own where none is written; 0 for files.
	Port int
	// Path is what the server is asked for, with percent signs decoded: "/o/r", or
	// "o/r" and "~user/r" below somebody's home.
	Path string
	// ScpStyle tells that it was written as "host:path".
	ScpStyle bool

	text string
}

// ParseURL reads the address of a repository. It refuses what git would take for an
// option, a remote helper's address, or something else than it looks like, and what
// holds a credential; a local path is accepted, whether it may be used is Rules'
// business.
func ParseURL(text string) (URL, error) {
	if rule := brokenTextRule(text); rule != "" {
		return URL{}, refuseURL(text, rule)
	}
	u, rule := parse(text)
	if rule != "" {
		return URL{}, refuseURL(text, rule)
	}
	u.text = text
	return u, nil
}

// String is what git is given: the text as it was written.
func (u URL) String() string { return u.text }

// IsZero tells whether it is no URL.
func (u URL) IsZero() bool { return u == URL{} }

// IsHTTP tells whether the repository is reached over HTTP, with or without TLS.
func (u URL) IsHTTP() bool { return u.Scheme == schemeHTTPS || u.Scheme == schemeHTTP }

// IsSSH tells whether the repository is reached over SSH.
func (u URL) IsSSH() bool { return u.Scheme == schemeSSH }

// IsLocal tells whether the repository is a directory of this machine.
func (u URL) IsLocal() bool { return u.Scheme == schemeFile }

// Repo is "host/path", the repository's name in metrics and logs: valid UTF-8, without
// user and port.
func (u URL) Repo() string {
	name := strings.TrimRight(strings.TrimLeft(u.Path, "/"), "/")
	if u.IsLocal() {
		name = u.Path
	} else {
		name = bracketed(u.CanonicalHost()) + "/" + name
	}
	return strings.ToValidUTF8(name, "�")
}

// Identity names a repository whatever scheme, user, port, trailing slash or ".git" its
// address is written with; two URLs of one repository have one identity. A forge's
// request is matched with volumes by it.
func (u URL) Identity() string {
	return bracketed(u.CanonicalHost()) + "/" + strings.Join(u.segments(), "/")
}

// CanonicalHost is the host in the one spelling by which hosts are compared: lower case,
// without a final dot, an address as its parser prints it.
func (u URL) CanonicalHost() string { return canonicalHost(u.Host) }

// segments are the parts of the path between slashes, of which ".git" at the end says
// nothing.
func (u URL) segments() []string { return segmentsOf(u.Path) }

func segmentsOf(path string) []string {
	path = strings.Trim(path, "/")
	if bare := strings.TrimSuffix(path, ".git"); bare != "" && !strings.HasSuffix(bare, "/") {
		path = bare
	}
	return strings.Split(path, "/")
}

// MarshalText writes the URL as git is given it.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.text), nil }

// UnmarshalText reads a URL with the rules of ParseURL; an empty text is the zero URL.
func (u *URL) UnmarshalText(text []byte) error {
	*u = URL{}
	if len(text) == 0 {
		return nil
	}
	parsed, err := ParseURL(string(text))
	if err == nil {
		*u = parsed
	}
	return err
}

func canonicalHost(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.String()
	}
	return strings.TrimSuffix(strings.ToLower(host), ".")
}

func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}
