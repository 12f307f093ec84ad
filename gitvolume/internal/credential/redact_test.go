package credential

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	const token = "a+b/c=d token"
	s := serve(t, mustParse(t, map[string]string{"token": token, "username": "bot"}), "https://h/r", nil)
	request := httptest.NewRequest(http.MethodGet, "https://h/r", nil)
	request.SetBasicAuth("bot", token)
	for _, form := range []string{
		token, url.QueryEscape(token), url.PathEscape(token), base64.StdEncoding.EncodeToString([]byte(token)),
		strings.TrimPrefix(request.Header.Get("Authorization"), "Basic "),
	} {
		text := "remote: you sent '" + form + "' and '" + form + "'"
		if got := s.Redact(text); got != "remote: you sent '***' and '***'" {
			t.Errorf("%q is shown as %q", text, got)
		}
	}
	if got := s.Redact("bot has no access"); got != "bot has no access" {
		t.Errorf("what is no secret is shown as %q", got)
	}
	if got := serve(t, Anonymous(), "https://h/r", nil).Redact("a text"); got != "a text" {
		t.Errorf("without a token a text is shown as %q", got)
	}
}
