package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
)

// No header but the right sum of the body, or the Secret itself, makes a request signed.
func FuzzIsSigned(f *testing.F) {
	f.Add(headerGitHub, "sha256=", []byte("body"), []byte("secret"))
	f.Add(headerGitHub, "sha1=00", []byte(""), []byte("s"))
	f.Add(headerGitea, "", []byte("body"), []byte("secret"))
	f.Add(headerGitLab, "secret", []byte("body"), []byte("secret"))
	f.Add(headerForgejo, strings.Repeat("0", 64), []byte("body"), []byte{0})
	f.Fuzz(func(t *testing.T, name, value string, body, secret []byte) {
		if len(secret) == 0 {
			return // Such a Secret is refused before.
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		sum := hex.EncodeToString(mac.Sum(nil))
		header := http.Header{}
		header.Set(name, value)
		isToken := header.Get(headerGitLab) == string(secret)
		if isSigned(header, body, secret) && !isToken && !strings.EqualFold(strings.TrimPrefix(value, "sha256="), sum) {
			t.Errorf("%q: %q signs %q with %q", name, value, body, secret)
		}
		for _, right := range []http.Header{{headerGitHub: {"sha256=" + sum}}, {headerGitea: {sum}}, {headerForgejo: {sum}}} {
			if !isSigned(right, body, secret) {
				t.Errorf("%v does not sign %q with %q", right, body, secret)
			}
		}
	})
}
