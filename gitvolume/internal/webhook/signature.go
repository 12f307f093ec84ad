package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
)

// The headers by which forges sign. Forgejo and Gitea send those of the forges that they
// come from too.
const (
	headerGitHub  = "X-Hub-Signature-256" // "sha256=" and the HMAC-SHA256 of the body, hexadecimal
	headerGitea   = "X-Gitea-Signature"   // the same without "sha256="
	headerForgejo = "X-Forgejo-Signature" // as Gitea's
	headerGitLab  = "X-Gitlab-Token"      // the secret itself
)

// signature is what a request has to show that its sender has the secret.
type signature struct {
	sums  [3][]byte // of the body; nil where a header has none
	token [sha256.Size]byte
	// isToken tells that there is a token.
	isToken bool
}

func signatureOf(header http.Header) signature {
	hub, _ := strings.CutPrefix(header.Get(headerGitHub), "sha256=")
	token := header.Get(headerGitLab)
	return signature{
		sums:  [...][]byte{sumOf(hub), sumOf(header.Get(headerGitea)), sumOf(header.Get(headerForgejo))},
		token: sha256.Sum256([]byte(token)), isToken: token != "",
	}
}

// sumOf is a sum that a header has hexadecimal, nil for what is none.
func sumOf(text string) []byte {
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) != sha256.Size {
		return nil
	}
	return sum
}

// needsBody tells whether the body has to be known to check it.
func (s signature) needsBody() bool {
	return s.sums[0] != nil || s.sums[1] != nil || s.sums[2] != nil
}

// isOf tells whether the request was made by who has the secret, which must not be empty, of
// a body with the sum. It takes the same time whatever is wrong.
func (s signature) isOf(secret, sum []byte) bool {
	want := sha256.Sum256(secret) // So that not even the secret's length is told.
	valid := subtle.ConstantTimeCompare(s.token[:], want[:])
	for _, given := range s.sums {
		valid |= subtle.ConstantTimeCompare(given, sum)
	}
	return valid == 1
}

// newSum is what forges sum the body up with.
func newSum(secret []byte) hash.Hash { return hmac.New(sha256.New, secret) }
