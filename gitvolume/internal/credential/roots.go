package credential

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"strings"
)

// errPrivateKey is of a key in a value that is public, and as such is written to a file.
var errPrivateKey = errors.New("it holds a private key, which does not belong there")

// privateKeyMark is in the first line of every private key that is text.
const privateKeyMark = "PRIVATE KEY-----"

// checkCA wants at least one certificate and nothing that is none: a TLS library would
// ignore it, and the connection would fail without saying why; and a private key, even a
// damaged one, would be written to a file.
func checkCA(text string) error {
	rest := []byte(normalized(text))
	for count := 0; ; count++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			switch {
			case strings.Contains(text, privateKeyMark):
				return errPrivateKey
			case count == 0:
				return errors.New("it holds no certificate (BEGIN CERTIFICATE)")
			case strings.Count(text, "-----BEGIN ") > count:
				return errors.New("it holds something that is cut off or damaged")
			}
			return nil
		}
		switch {
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return errPrivateKey
		case block.Type != "CERTIFICATE":
			return errors.New("it holds something else than certificates")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return errors.New("it holds a certificate that cannot be read")
		}
	}
}

// systemRoots are the files in which distributions keep the certificates of the public
// authorities, in one piece.
func systemRoots() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem", // openSUSE
		"/etc/ssl/cert.pem",
	}
}

// bundle is the system's roots and the CA: git takes one file, which replaces the
// system's own. Without a system's file the CA is alone.
func bundle(roots []string, ca string) string {
	for _, file := range roots {
		if content, err := os.ReadFile(file); err == nil {
			return normalized(string(content)) + ca
		}
	}
	return ca
}
