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
func refuseURL(text, rule string) error { return refuse(WithoutSecrets(text), rule) }

const hidden = "***"

// WithoutSecrets hides where a text can hold a credential, read as generously as
// possible, because it is asked about texts that are no URL: a user may be all that a
// forge wants as a token, a password may hold any byte, and a query or a fragment is where
// some put it.
func WithoutSecrets(text string) string {
	at, query := strings.LastIndexByte(text, '@'), strings.IndexAny(text, "?#")
	scheme, rest, isURL := strings.Cut(text, "://")
	isURL = isURL && strings.Trim(scheme, schemeBytes) == ""
	end := ""
	if query >= 0 {
		end = text[query:query+1] + hidden
	}
	switch {
	case at < 0 && query < 0:
		return text
	case at < 0:
		return text[:query] + end
	case query < 0:
		end = text[at:]
	case at < query:
		end = text[at:query] + end
	}
	// With an "@" after it what looks like a query may be a part of a password.
	switch {
	case isURL && scheme == schemeSSH && query < 0 && !strings.ContainsAny(rest[:at-len(scheme+"://")], ":%/"):
		return text
	case isURL:
		return scheme + "://" + hidden + end
	case query >= 0 && query < at:
		return hidden + end
	}
	// user@host:path, unless a colon before the "@" makes it user:password@host:path.
	if colon := strings.IndexByte(text[:at], ':'); colon >= 0 {
		return text[:colon+1] + hidden + end
	}
	return text[:at] + end
}
