package credential

import (
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/attributes"
)

// ErrUnfit is wrapped by every error of Fits.
var ErrUnfit = errors.New("the credential does not fit the URL")

// Allowed are the exceptions that a node's flags make.
type Allowed struct {
	// Insecure lets a token go over http:// (--allow-insecure).
	Insecure bool
}

// Fits tells whether a repository of the URL can be shown the credential at all, before
// anything is started.
func (c *Credential) Fits(u attributes.URL, allowed Allowed) error {
	rule := ""
	switch {
	case u.IsLocal():
	case u.IsSSH() && c.kind == KindToken:
		rule = "ssh takes a private key, and the Secret has a token; write an https:// URL, or a Secret with " + keyPrivate
	case u.IsSSH() && c.kind == KindAnonymous:
		rule = "ssh lets nobody in without a key; name a Secret with " + keyPrivate
	case u.IsSSH():
	case c.kind == KindAnonymous:
	case !u.IsHTTP():
		rule = "git:// knows no credentials; write an https:// or ssh:// URL, or name no Secret"
	case c.kind == KindKey:
		rule = "HTTP takes a token, and the Secret has an SSH key; write an ssh:// URL, or a Secret with " + keyToken
	case u.Scheme == "http" && !allowed.Insecure:
		rule = "a token over http:// can be read by everyone on the way; write https://, or set --allow-insecure on the node"
	}
	if rule == "" {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", u.Repo(), rule, ErrUnfit)
}
