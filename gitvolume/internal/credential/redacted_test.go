package credential

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestNothingPrintsASecret prints credentials in every way, also as fields that nobody
// may ask for their String method.
func TestNothingPrintsASecret(t *testing.T) {
	const token = "secret-token-of-this-test"
	key := gittest.NewKey(t, "ed25519")
	secrets := append(key.Secrets(), token, fmt.Sprint([]byte(token)), fmt.Sprintf("%x", token))
	for _, c := range []*Credential{
		mustParse(t, map[string]string{"token": token}),
		mustParse(t, map[string]string{"ssh-privatekey": key.PEM}),
	} {
		if c.signer != nil {
			secrets = append(secrets, fmt.Sprint(c.signer()), fmt.Sprintf("%v", c.signer()))
		}
		values := []any{
			c, *c, &c, []*Credential{c}, []Credential{*c}, map[string]any{"c": *c},
			struct{ C *Credential }{c},
			struct{ C Credential }{*c},
			struct{ c *Credential }{c},
			struct{ c Credential }{*c},
			struct{ *Credential }{c},
			struct{ s Session }{Session{credential: c}}.s.credential,
			fmt.Errorf("an error with %v", c),
		}
		var printed strings.Builder
		for _, value := range values {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
				fmt.Fprintf(&printed, verb+"\n", value)
			}
			for _, handler := range []slog.Handler{slog.NewJSONHandler(&printed, nil), slog.NewTextHandler(&printed, nil)} {
				slog.New(handler).Info("a value", "value", value) //nolint:sloglint // the key is the test's own
			}
			for _, encode := range []func(any) ([]byte, error){json.Marshal, func(v any) ([]byte, error) {
				var b bytes.Buffer
				err := gob.NewEncoder(&b).Encode(v)
				return b.Bytes(), err
			}} {
				text, err := encode(value)
				printed.Write(text)
				fmt.Fprintln(&printed, err)
			}
		}
		for _, secret := range secrets {
			if strings.Contains(printed.String(), secret) {
				t.Errorf("%s: a secret is printed: %s", c, secret)
			}
		}
		if want := "credential(" + string(c.Kind()) + ")"; fmt.Sprint(c) != want || fmt.Sprintf("%#v", *c) != want {
			t.Errorf("it is printed as %v, want %s", c, want)
		}
	}
}
