package gittest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Key is a pair of SSH keys.
type Key struct {
	// Type is "rsa", "ed25519" or "ecdsa".
	Type string
	// PEM is the private key in OpenSSH's own format.
	PEM string
	// Private is the same key, for other formats.
	Private crypto.Signer
	// Authorized is the public key as a line of authorized_keys.
	Authorized string
	Public     ssh.PublicKey
}

// NewKey makes a key of the type "rsa" (2048 bits), "ed25519" or "ecdsa" (P-256).
func NewKey(t testing.TB, keyType string) Key {
	t.Helper()
	private, err := generate(keyType)
	if err != nil {
		t.Fatalf("make a key of type %q: %v", keyType, err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return Key{
		Type:       keyType,
		PEM:        string(pem.EncodeToMemory(block)),
		Private:    private,
		Authorized: string(ssh.MarshalAuthorizedKey(public)),
		Public:     public,
	}
}

func generate(keyType string) (crypto.Signer, error) {
	switch keyType {
	case "rsa":
		return rsa.GenerateKey(rand.Reader, 2048)
	case "ecdsa":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return private, err
	}
}
