// Package pki makes the certificates of a cluster that lives on one machine: one
// authority, a certificate per component, and the kubeconfigs that carry them.
// It must never be used for anything reachable from elsewhere: keys are kept
// unencrypted and certificates last for years.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// Pair is a certificate and its key, both PEM.
type Pair struct {
	Certificate, Key []byte
}

// Subject is whom a certificate is for. Kubernetes reads Name as the user and
// Groups as its groups.
type Subject struct {
	Name      string
	Groups    []string
	Addresses []netip.Addr
	DNS       []string
}

// Authority signs certificates.
type Authority struct {
	// Certificate is the authority's own, PEM.
	Certificate []byte

	parsed *x509.Certificate
	key    crypto.Signer
}

// lifetime is long because nothing renews the certificates of a cluster that is
// made anew in seconds.
const lifetime = 10 * 365 * 24 * time.Hour

// NewAuthority makes an authority with a key of its own, which is never written
// anywhere: a cluster's certificates are all made at once.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	template, err := newTemplate(Subject{Name: name})
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	return &Authority{Certificate: encode("CERTIFICATE", der), parsed: parsed, key: key}, nil
}

// Issue makes a key and signs a certificate for it that serves both as a client's
// and as a server's.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make a key for %s: %w", subject.Name, err)
	}
	template, err := newTemplate(subject)
	if err != nil {
		return Pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", subject.Name, err)
	}
	// Not PKCS #8: the API server reads the key of service accounts in no other form.
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode the key of %s: %w", subject.Name, err)
	}
	return Pair{Certificate: encode("CERTIFICATE", der), Key: encode("EC PRIVATE KEY", private)}, nil
}

func newTemplate(subject Subject) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: subject.Name, Organization: subject.Groups},
		// A clock that is set back a little must not make the cluster refuse itself.
		NotBefore:   time.Now().Add(-24 * time.Hour),
		NotAfter:    time.Now().Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:    subject.DNS,
	}
	for _, address := range subject.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	return template, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
