package attributes

import (
	"errors"
	"testing"
)

func TestCheckHost(t *testing.T) {
	rulesOf := func(texts ...string) (r Rules) {
		for _, text := range texts {
			p, err := ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			r.Allow = append(r.Allow, p)
		}
		return r
	}
	for _, row := range []struct {
		rules   Rules
		host    string
		port    uint16
		refused bool
	}{
		{Rules{}, "anything.example", 22, false},
		{rulesOf("git.example.com"), "git.example.com", 8443, false},
		{rulesOf("git.example.com"), "GIT.example.com.", 443, false},
		{rulesOf("git.example.com"), "evil.example.com", 443, true},
		{rulesOf("git.example.com:443"), "git.example.com", 80, true},
		{rulesOf("https://git.example.com/acme/*"), "git.example.com", 443, false},
		{rulesOf("*.example.com", "h"), "a.b.example.com", 443, false},
		{rulesOf("[::1]:22"), "0::1", 22, false},
		{rulesOf("[::1]:22"), "::1", 23, true},
		{rulesOf("*"), "any", 1, false},
	} {
		err := row.rules.CheckHost(row.host, row.port)
		if (err != nil) != row.refused || err != nil && !errors.Is(err, ErrHost) {
			t.Errorf("%s of %q: %s:%d: %v", row.rules, row.rules.Allow, row.host, row.port, err)
		}
	}
	if a, b := rulesOf("b", "a", "a"), rulesOf("a", "b"); a.String() != b.String() {
		t.Errorf("%q is not %q", a, b)
	}
}

func TestAddressesAreSpelledInOneWay(t *testing.T) {
	a, err := ParseAddresses([]string{"127.0.0.0/8", "::1"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParseAddresses([]string{"::1/128", "127.0.0.0/8", "::1"})
	if err != nil || a.String() != b.String() || a.String() == (Addresses{}).String() {
		t.Errorf("%q and %q, %v", a, b, err)
	}
}
