package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"hash"
	"io"
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
// a body with the sums. It takes the same time whatever is wrong.
func (s signature) isOf(secret []byte, of sums) bool {
	want := sha256.Sum256(secret) // So that not even the secret's length is told.
	valid := subtle.ConstantTimeCompare(s.token[:], want[:])
	body, payload := of.body.Sum(nil), of.payload.Sum(nil)
	for _, given := range s.sums {
		valid |= subtle.ConstantTimeCompare(given, body) | subtle.ConstantTimeCompare(given, payload)
	}
	return valid == 1
}

// sums are what forges sign of a body. GitHub signs it as it is sent; Gitea and Forgejo sign
// the JSON, which of a form is not what is sent.
type sums struct{ body, payload hash.Hash }

func newSums(secret []byte) sums {
	return sums{body: hmac.New(sha256.New, secret), payload: hmac.New(sha256.New, secret)}
}

// read has the payload of a body be taken, and sums all of the body up, however much of it
// is taken.
func (s sums) read(body io.Reader, isForm bool, take func(payload io.Reader) error) error {
	in := io.TeeReader(body, s.body)
	payload, err := payloadOf(in, isForm)
	if err == nil {
		payload = io.TeeReader(payload, s.payload)
		err = take(payload)
		_, _ = io.Copy(io.Discard, payload) // what cannot be read has no right sum
	}
	_, _ = io.Copy(io.Discard, in)
	return err
}
