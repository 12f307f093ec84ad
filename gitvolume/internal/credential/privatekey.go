package credential

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"strings"

	"golang.org/x/crypto/ssh"
)

var (
	errPassphrase = errors.New("the key is protected by a passphrase, which nobody is there to type; " +
		"store it without one (ssh-keygen -p)")
	errNoKey = errors.New("it holds no private key; want one of OpenSSH (BEGIN OPENSSH PRIVATE KEY), " +
		"PKCS#8 (BEGIN PRIVATE KEY), PKCS#1 (BEGIN RSA PRIVATE KEY) or SEC 1 (BEGIN EC PRIVATE KEY)")
	errPublicKey = errors.New("it holds a public key; the private one is wanted")
	errPuTTY     = errors.New("it is a key of PuTTY; export it in OpenSSH's format")
	errKeyType   = errors.New("its type is not served; want RSA, ECDSA or Ed25519")
	errKey       = errors.New("the private key cannot be read: it is damaged or of an unknown kind")
	errCurve     = errors.New("its curve is none that SSH knows; want P-256, P-384 or P-521")
	errShortRSA  = errors.New("the RSA key has fewer than 1024 bits, which OpenSSH does not take")
)

// parsePrivateKey reads a private key. Its errors are of its own words: a parser's
// could repeat what it read.
func parsePrivateKey(text string) (crypto.Signer, error) {
	text = normalized(text)
	block, _ := pem.Decode([]byte(text))
	switch {
	case strings.HasPrefix(text, "PuTTY-User-Key-File"):
		return nil, errPuTTY
	case block == nil && strings.Contains(text, "ssh-") || block != nil && strings.HasSuffix(block.Type, "PUBLIC KEY"):
		return nil, errPublicKey
	case block == nil:
		return nil, errNoKey
	case block.Type == "ENCRYPTED PRIVATE KEY":
		return nil, errPassphrase
	case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return nil, errNoKey
	}
	parsed, err := ssh.ParseRawPrivateKey([]byte(text))
	var missing *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &missing):
		return nil, errPassphrase
	case err != nil:
		return nil, errKey
	}
	switch key := parsed.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < 1024 {
			return nil, errShortRSA
		}
		return key, nil
	case *ecdsa.PrivateKey:
		// Of other curves SSH has no public key, by which a credential is known.
		if _, err := ssh.NewPublicKey(key.Public()); err != nil {
			return nil, errCurve
		}
		return key, nil
	case ed25519.PrivateKey:
		return key, nil
	case *ed25519.PrivateKey:
		return *key, nil
	}
	return nil, errKeyType
}
