package credential

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"path"
	"strings"
)

// isNamed tells whether a line of known_hosts that begins with the names is the server's.
// The driver writes a single plain name, but an operator may add lines in any of OpenSSH's
// forms, and one that was passed over would leave the first key that is seen to be trusted.
func isNamed(server, names string) bool {
	named := false
	for name := range strings.SplitSeq(names, ",") {
		pattern, but := strings.CutPrefix(name, "!")
		if !isName(server, pattern) {
			continue
		}
		if but {
			return false
		}
		named = true
	}
	return named
}

// isName compares the server with one name: a plain one, a pattern with "*" and "?", or
// one that ssh-keygen -H has hashed.
func isName(server, name string) bool {
	if hashed, found := strings.CutPrefix(name, "|1|"); found {
		salt, sum, _ := strings.Cut(hashed, "|")
		key, keyErr := base64.StdEncoding.DecodeString(salt)
		want, sumErr := base64.StdEncoding.DecodeString(sum)
		h := hmac.New(sha1.New, key)
		h.Write([]byte(server))
		return keyErr == nil && sumErr == nil && hmac.Equal(h.Sum(nil), want)
	}
	// The bracket of [host]:port begins no class of characters.
	plain := strings.NewReplacer("[", `\[`, `\`, `\\`).Replace(strings.ToLower(name))
	matched, err := path.Match(plain, server)
	return err == nil && matched
}
