package credential

import (
	"errors"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

func TestEqualAndDigest(t *testing.T) {
	key, other := gittest.NewKey(t, "rsa"), gittest.NewKey(t, "ed25519")
	ca := certificate(t)
	data := []map[string]string{
		{"token": "abcdefgh"},
		{"token": "abcdefgi"},
		{"token": "abcdefgh", "username": "bot"},
		{"token": "habcdefg", "username": "gi"},
		{"token": "tabcdefgh", "username": "gi"},
		{"token": "abcdefgh", "ca.crt": ca},
		{"ssh-privatekey": key.PEM},
		{"ssh-privatekey": other.PEM},
		{"ssh-privatekey": key.PEM, "known_hosts": ""},
		{"ssh-privatekey": key.PEM, "known_hosts": "a ssh-rsa x"},
	}
	// What a server is not shown makes another Secret, and no other digest.
	sameDigest := map[int]int{5: 0, 8: 6, 9: 6}
	all := []*Credential{}
	for _, secret := range data {
		all = append(all, mustParse(t, secret))
	}
	all = append(all, Anonymous())
	secret, secret2 := []byte("key of the node"), []byte("another")
	for i, a := range all {
		for j, b := range all {
			if a.Equal(b) != (i == j) {
				t.Errorf("%d equals %d: %v", i, j, i != j)
			}
			if same := a.Identity(secret) == b.Identity(secret); same != (i == j) {
				t.Errorf("the identities of %d and %d are equal: %v", i, j, same)
			}
			first := func(i int) int {
				if shown, found := sameDigest[i]; found {
					return shown
				}
				return i
			}
			if same := first(i) == first(j); (a.Digest(secret) == b.Digest(secret)) != same {
				t.Errorf("the digests of %d and %d are equal: %v", i, j, !same)
			}
		}
		if a.Digest(secret) == a.Digest(secret2) {
			t.Errorf("%d: the digest does not depend on its key", i)
		}
	}
	again := mustParse(t, map[string]string{"ssh-privatekey": formats(t, key)["PKCS#8 with CRLF"]})
	if !again.Equal(all[6]) {
		t.Error("one key in two formats is two credentials")
	}
	if again.Identity(secret) != all[6].Identity(secret) || all[0].Identity(secret) == all[0].Identity(secret2) {
		t.Error("the identity is not that of the Secret and the key")
	}
	if all[0].Equal(nil) || !(*Credential)(nil).Equal(nil) {
		t.Error("no credential equals one")
	}
}

func TestFits(t *testing.T) {
	credentials := map[Kind]*Credential{
		KindAnonymous: Anonymous(),
		KindToken:     mustParse(t, map[string]string{"token": "abcdefgh"}),
		KindKey:       mustParse(t, map[string]string{"ssh-privatekey": gittest.NewKey(t, "ed25519").PEM}),
	}
	for _, row := range []struct {
		url     string
		allowed Allowed
		fits    []Kind
	}{
		{"https://h/r", Allowed{}, []Kind{KindAnonymous, KindToken}},
		{"http://h/r", Allowed{}, []Kind{KindAnonymous}},
		{"http://h/r", Allowed{Insecure: true}, []Kind{KindAnonymous, KindToken}},
		{"git@h:r", Allowed{Insecure: true}, []Kind{KindKey}},
		{"git://h/r", Allowed{}, []Kind{KindAnonymous}},
		{"/srv/r.git", Allowed{}, []Kind{KindAnonymous, KindToken, KindKey}},
	} {
		want := map[Kind]bool{}
		for _, kind := range row.fits {
			want[kind] = true
		}
		for kind, c := range credentials {
			err := c.Fits(parseURL(t, row.url), row.allowed)
			if want[kind] != (err == nil) || err != nil && !errors.Is(err, ErrUnfit) {
				t.Errorf("%s for %s %+v: %v", kind, row.url, row.allowed, err)
			}
		}
	}
}
