package credential

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"

	"golang.org/x/crypto/ssh"
)

// Equal tells whether two Secrets say the same, in a time that does not depend on where
// they differ.
func (c *Credential) Equal(other *Credential) bool {
	if c == nil || other == nil {
		return c == other
	}
	a, b := c.sum(sha256.New(), c.all()), other.sum(sha256.New(), other.all())
	return subtle.ConstantTimeCompare(a, b) == 1
}

// Digest names, on disk, what a server is shown: who has the credential finds the
// digest again, and nobody else learns anything from it, since the key is secret. Known
// hosts and a CA do not count: they grant nothing. See Identity for work that is shared.
func (c *Credential) Digest(key []byte) [sha256.Size]byte {
	return [sha256.Size]byte(c.sum(hmac.New(sha256.New, key), c.shown()))
}

// Identity is Digest of all that the Secret says, so also of whom it trusts. What one
// Secret brings may be taken for what another would have brought only if they have one
// identity: known hosts and a CA grant nothing, but without them, or with others, the
// answer may come from somebody else.
func (c *Credential) Identity(key []byte) [sha256.Size]byte {
	return [sha256.Size]byte(c.sum(hmac.New(sha256.New, key), c.all()))
}

// shown are the parts of the credential that a server sees.
func (c *Credential) shown() []string {
	switch c.kind {
	case KindKey:
		public, err := ssh.NewPublicKey(c.signer().Public())
		if err != nil {
			panic("a private key that was parsed has no public key: " + err.Error())
		}
		return []string{string(KindKey), string(public.Marshal())}
	case KindToken:
		return []string{string(KindToken), c.username, c.token()}
	}
	return []string{string(KindAnonymous)}
}

func (c *Credential) all() []string {
	parts := append(c.shown(), c.ca)
	if c.knownHosts != nil {
		parts = append(parts, *c.knownHosts)
	}
	return parts
}

// sum hashes the parts, each with its length before it, so that no two lists of parts
// are written alike.
func (c *Credential) sum(h hash.Hash, parts []string) []byte {
	for _, part := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}
