package credential

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"liken.sh/gitvolume/internal/gittest"
)

// formats are a key in each format that it has.
func formats(t testing.TB, key gittest.Key) map[string]string {
	t.Helper()
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key.Private)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"OpenSSH": key.PEM,
		"PKCS#8":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
	}
	switch private := key.Private.(type) {
	case *rsa.PrivateKey:
		all["PKCS#1"] = string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))
	case *ecdsa.PrivateKey:
		sec1, err := x509.MarshalECPrivateKey(private)
		if err != nil {
			t.Fatal(err)
		}
		all["SEC 1"] = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}))
	}
	for format, text := range maps.Clone(all) {
		all[format+" without final newline"] = strings.TrimSuffix(text, "\n")
		all[format+" with CRLF"] = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return all
}

// C44: key formats.
func TestPrivateKeyFormats(t *testing.T) {
	for _, keyType := range []string{"rsa", "ed25519", "ecdsa"} {
		key := gittest.NewKey(t, keyType)
		for format, text := range formats(t, key) {
			c, err := Parse(map[string][]byte{"ssh-privatekey": []byte(text)})
			if err != nil {
				t.Errorf("%s, %s: %v", keyType, format, err)
				continue
			}
			if public, err := ssh.NewPublicKey(c.signer().Public()); err != nil || string(public.Marshal()) != string(key.Public.Marshal()) {
				t.Errorf("%s, %s: it is another key, %v", keyType, format, err)
			}
			if c.Kind() != KindKey || c.HasKnownHosts() {
				t.Errorf("%s, %s: it is %s, known hosts %v", keyType, format, c.Kind(), c.HasKnownHosts())
			}
		}
	}
}

func TestParseToken(t *testing.T) {
	for _, row := range []struct {
		data            map[string]string
		username, token string
	}{
		{map[string]string{"token": "abcdefgh"}, "git", "abcdefgh"},
		{map[string]string{"token": "abcdefgh\n"}, "git", "abcdefgh"},
		{map[string]string{"token": " abcdefgh \t"}, "git", " abcdefgh \t"},
		{map[string]string{"token": "a=b:c@d/%", "username": "bot\n"}, "bot", "a=b:c@d/%"},
		{map[string]string{"token": "abcdefgh", "username": ""}, "", "abcdefgh"},
	} {
		c, err := Parse(row.data)
		if err != nil || c.Kind() != KindToken || c.username != row.username || c.token() != row.token {
			t.Errorf("%q: %v, user %q, %v", row.data, c, c.username, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	key := gittest.NewKey(t, "ed25519")
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(key.Private, "", []byte("secret-x"))
	if err != nil {
		t.Fatal(err)
	}
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	legacy := pem.EncodeToMemory(&pem.Block{
		Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00112233445566778899AABBCCDDEEFF"},
		Bytes: x509.MarshalPKCS1PrivateKey(short),
	})
	for _, row := range []struct {
		name string
		data map[string]string
		says string
	}{
		{"nothing", nil, "neither ssh-privatekey nor token, but nothing"},
		{"other keys", map[string]string{"password": "secret-x", "identity": "secret-x"}, `but "identity", "password"`},
		{"only a CA", map[string]string{"ca.crt": certificate(t)}, "neither"},
		{"both", map[string]string{"token": "secret-x", "ssh-privatekey": key.PEM}, "both"},
		{"no token", map[string]string{"token": "\n"}, "empty"},
		{"two lines", map[string]string{"token": "secret-x\n\n"}, "line break"},
		{"a password of two lines", map[string]string{"token": "secret-x\nquit=1"}, "line break"},
		{"a carriage return", map[string]string{"token": "secret-x\r\n"}, "line break"},
		{"NUL", map[string]string{"token": "secret-x\x00"}, "NUL"},
		{"a colon in the user", map[string]string{"token": "secret-x", "username": "a:b"}, "username"},
		{"an empty key", map[string]string{"ssh-privatekey": ""}, "no private key"},
		{"no key", map[string]string{"ssh-privatekey": "secret-x"}, "SEC 1 (BEGIN EC PRIVATE KEY)"},
		{"a public key", map[string]string{"ssh-privatekey": key.Authorized}, "public key"},
		{"PuTTY", map[string]string{"ssh-privatekey": "PuTTY-User-Key-File-3: ssh-ed25519\nsecret-x"}, "PuTTY"},
		{"OpenSSH with a passphrase", map[string]string{"ssh-privatekey": string(pem.EncodeToMemory(locked))}, "passphrase"},
		{"PEM with a passphrase", map[string]string{"ssh-privatekey": string(legacy)}, "passphrase"},
		{"PKCS#8 with a passphrase", map[string]string{"ssh-privatekey": string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")}))}, "passphrase"},
		{"a cut key", map[string]string{"ssh-privatekey": key.PEM[:120] + "\n-----END OPENSSH PRIVATE KEY-----\n"}, "private key"},
		{"damaged", map[string]string{"ssh-privatekey": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("secret-x")}))}, "damaged"},
		{"a certificate", map[string]string{"ssh-privatekey": certificate(t)}, "no private key"},
		{"SEC 1 of a curve that SSH does not know", map[string]string{"ssh-privatekey": ofP224(t, "EC PRIVATE KEY")}, "curve"},
		{"PKCS#8 of a curve that SSH does not know", map[string]string{"ssh-privatekey": ofP224(t, "PRIVATE KEY")}, "curve"},
		{"no CA", map[string]string{"token": "secret-x", "ca.crt": "x"}, "ca.crt: it holds no certificate"},
		{"a CA's key", map[string]string{"token": "secret-x", "ca.crt": certificate(t) + key.PEM}, "private key"},
		{"a CA's key that is cut off", map[string]string{"token": "secret-x", "ca.crt": certificate(t) + key.PEM[:120]}, "private key"},
		{"a second CA that is cut off", map[string]string{"token": "secret-x", "ca.crt": certificate(t) + certificate(t)[:120]}, "cut off"},
		{"long known hosts", map[string]string{"token": "secret-x", "known_hosts": strings.Repeat("h", longestPublic+1)}, "known_hosts: it has more than 256 KiB; leave out servers"},
		{"a long CA", map[string]string{"token": "secret-x", "ca.crt": certificate(t) + strings.Repeat("#", longestPublic)}, "ca.crt: it has more than 256 KiB; leave out what the system trusts"},
		{"a key among the known hosts", map[string]string{"token": "secret-x", "known_hosts": "h ssh-rsa x\n" + key.PEM}, "private key"},
		{"a damaged CA", map[string]string{"token": "secret-x", "ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))}, "cannot be read"},
	} {
		c, err := Parse(row.data)
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), row.says) || c != nil {
			t.Errorf("%s: the error does not say %q: %v", row.name, row.says, err)
			continue
		}
		if strings.Contains(err.Error(), "secret-x") || strings.Contains(err.Error(), key.Secrets()[1]) {
			t.Errorf("%s: the error repeats a secret: %v", row.name, err)
		}
	}
}

// ofP224 is a key with which a credential could be neither shown nor named.
func ofP224(t testing.TB, blockType string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if blockType == "EC PRIVATE KEY" {
		der, err = x509.MarshalECPrivateKey(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: der}))
}

func FuzzParse(f *testing.F) {
	f.Add(gittest.NewKey(f, "ed25519").PEM, "host ssh-ed25519 x", "-----BEGIN CERTIFICATE-----")
	f.Add(ofP224(f, "PRIVATE KEY"), "", "")
	f.Fuzz(func(t *testing.T, private, hosts, ca string) {
		c, err := Parse(map[string]string{"ssh-privatekey": private, "known_hosts": hosts, "ca.crt": ca})
		if err == nil && !c.Equal(c) {
			t.Error("it does not equal itself")
		}
	})
}

func TestNormalized(t *testing.T) {
	for given, want := range map[string]string{"": "", "\n": "\n", "a": "a\n", "a\n": "a\n", "a\r\nb": "a\nb\n", "a\r\nb\r": "a\nb\n"} {
		if got := normalized(given); got != want {
			t.Errorf("%q is made %q, want %q", given, got, want)
		}
	}
}

// certificate is a CA's.
func certificate(t testing.TB) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
