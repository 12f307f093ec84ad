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
	secrets := append(key.Secrets(), token, fmt.Sprintf("%d", []byte(token)), fmt.Sprintf("%x", token))
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
		printed := printed(values...)
		for _, secret := range secrets {
			if strings.Contains(printed, secret) {
				t.Errorf("%s: a secret is printed: %s", c, secret)
			}
		}
		if want := "credential(" + string(c.Kind()) + ")"; fmt.Sprint(c) != want || fmt.Sprintf("%#v", *c) != want {
			t.Errorf("it is printed as %v, want %s", c, want)
		}
	}
}

func TestPrintedShowsWhatIsNotRedacted(t *testing.T) {
	const token = "secret-token-of-this-test"
	for _, value := range []any{struct{ s string }{token}, struct{ s []byte }{[]byte(token)}, struct{ C struct{ s string } }{struct{ s string }{token}}} {
		if !strings.Contains(printed(value), token) {
			t.Errorf("a %T can hide a token by itself", value)
		}
	}
}

// printed is what comes out of all that could print the values.
func printed(values ...any) string {
	var all strings.Builder
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t"} {
			fmt.Fprintf(&all, verb+"\n", value)
		}
		for _, handler := range []slog.Handler{slog.NewJSONHandler(&all, nil), slog.NewTextHandler(&all, nil)} {
			slog.New(handler).Info("a value", "value", value)
		}
		for _, encode := range []func(any) ([]byte, error){json.Marshal, func(v any) ([]byte, error) {
			var b bytes.Buffer
			err := gob.NewEncoder(&b).Encode(v)
			return b.Bytes(), err
		}} {
			text, err := encode(value)
			all.Write(text)
			fmt.Fprintln(&all, err)
		}
	}
	return all.String()
}
