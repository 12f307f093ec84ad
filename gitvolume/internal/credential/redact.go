package credential

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// shortestRedacted is the length below which a token would be found in any text.
const shortestRedacted = 4

// Redact returns the text without the token: a server can repeat in its answer what it
// was sent, and the words of servers go to logs and Events. A private key is sent to
// nobody.
func (s *Session) Redact(text string) string {
	if s.credential.kind != KindToken || len(s.credential.token()) < shortestRedacted {
		return text
	}
	token := s.credential.token()
	basic := base64.StdEncoding.EncodeToString([]byte(s.credential.username + ":" + token))
	for _, form := range []string{basic, token, url.QueryEscape(token), url.PathEscape(token)} {
		text = strings.ReplaceAll(text, form, "[redacted]")
	}
	return text
}
