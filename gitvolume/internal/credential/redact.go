package credential

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"
)

// Redact takes the token out of a text: a server is sent it, and may repeat it, or the
// header that it came in, in what it says. A private key is sent to nobody.
func (s *Session) Redact(text string) string {
	if s.credential.kind != KindToken {
		return text
	}
	token := s.credential.token()
	header := s.credential.username + ":" + token
	// The long ones first: a short token can be a part of its own longer forms.
	for _, form := range []string{
		base64.StdEncoding.EncodeToString([]byte(header)),
		base64.RawStdEncoding.EncodeToString([]byte(header)),
		base64.StdEncoding.EncodeToString([]byte(token)),
		base64.RawStdEncoding.EncodeToString([]byte(token)),
		hex.EncodeToString([]byte(token)),
		url.QueryEscape(token),
		url.PathEscape(token),
		token,
	} {
		text = strings.ReplaceAll(text, form, "***")
	}
	return text
}
