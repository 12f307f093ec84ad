package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
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

// isSigned tells whether a request was made by who has the secret, which must not be empty.
// It takes the same time whatever is wrong.
func isSigned(header http.Header, body, secret []byte) bool {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	sum := mac.Sum(nil)
	hub, _ := strings.CutPrefix(header.Get(headerGitHub), "sha256=")
	valid := isSum(hub, sum) | isSum(header.Get(headerGitea), sum) | isSum(header.Get(headerForgejo), sum)
	return valid|isToken(header.Get(headerGitLab), secret) == 1
}

// isSum compares a sum as a header has it, hexadecimal.
func isSum(text string, sum []byte) int {
	given, err := hex.DecodeString(text)
	if err != nil {
		given = nil
	}
	return subtle.ConstantTimeCompare(given, sum)
}

// isToken compares sums, so that not even the secret's length is told.
func isToken(token string, secret []byte) int {
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256(secret)
	return subtle.ConstantTimeCompare(given[:], want[:])
}
