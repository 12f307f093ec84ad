package attributes

import (
	"errors"
	"fmt"
	"strings"

	"liken.sh/csicommon/quote"
)

// ErrInvalid is wrapped by every refusal of this package.
var ErrInvalid = errors.New("not valid")

// refuse is the error of a value that breaks a rule.
func refuse(value, rule string) error {
	return fmt.Errorf("%s %s: %w", quote.Value(value), rule, ErrInvalid)
}

// refuseURL is refuse for a text that was meant as a URL, in which somebody may have
// written a password.
func refuseURL(text, rule string) error { return refuse(withoutSecrets(text), rule) }

const hidden = "***"

// withoutSecrets hides where a text can hold a credential, read as generously as
// possible, because it is asked about texts that are no URL: a user may be all that a
// forge wants as a token, a password may hold a slash, and a query is where some put it.
func withoutSecrets(text string) string {
	if head, _, found := strings.Cut(text, "?"); found {
		text = head + "?" + hidden
	}
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	scheme, rest, isURL := strings.Cut(text[:at], "://")
	switch {
	case !isURL:
		// user@host:path, unless a colon before the "@" makes it user:password@host:path.
		if colon := strings.IndexByte(text[:at], ':'); colon >= 0 {
			return text[:colon+1] + hidden + text[at:]
		}
		return text
	case scheme == schemeSSH && !strings.ContainsAny(rest, ":%/"):
		return text
	}
	return scheme + "://" + hidden + text[at:]
}
