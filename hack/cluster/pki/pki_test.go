package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"strings"
	"testing"
)

func TestIssuedCertificateIsTaken(t *testing.T) {
	authority, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddr("10.213.0.1")
	pair, err := authority.Issue(Subject{
		Name: "system:node:node-1", Groups: []string{"system:nodes"},
		Addresses: []netip.Addr{address}, DNS: []string{"kubernetes.default.svc"},
	})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatalf("key and certificate do not fit: %v", err)
	}
	leaf, err := x509.ParseCertificate(parsed.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority.Certificate) {
		t.Fatal("the authority's certificate is no PEM")
	}
	for _, name := range []string{"10.213.0.1", "kubernetes.default.svc"} {
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
			options := x509.VerifyOptions{Roots: roots, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}}
			if _, err := leaf.Verify(options); err != nil {
				t.Errorf("for %s, usage %d: %v", name, usage, err)
			}
		}
	}
	if leaf.Subject.CommonName != "system:node:node-1" || leaf.Subject.Organization[0] != "system:nodes" {
		t.Errorf("the subject is %s", leaf.Subject)
	}

	other, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	foreign := x509.NewCertPool()
	foreign.AppendCertsFromPEM(other.Certificate)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: foreign}); err == nil {
		t.Error("another authority of the same name vouches for the certificate")
	}
}

func TestKubeconfigCarriesEverything(t *testing.T) {
	content, err := Kubeconfig("https://10.213.0.1:443", "admin", []byte("A"), Pair{Certificate: []byte("B"), Key: []byte("C")})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"server: https://10.213.0.1:443", "certificate-authority-data: QQ==",
		"client-certificate-data: Qg==", "client-key-data: Qw==", "current-context: liken",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("%q is missing in\n%s", want, content)
		}
	}
}
