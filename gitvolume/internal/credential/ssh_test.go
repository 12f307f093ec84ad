package credential

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"liken.sh/gitvolume/internal/gittest"
)

// connects is how often a server is connected to: what depends on an order that
// changes at random shows in as many.
const connects = 30

// hashed is known_hosts with its names hashed, as ssh-keygen -H writes them.
func hashed(t testing.TB, knownHosts string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte(knownHosts), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command("ssh-keygen", "-q", "-H", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// connectOften connects with one session for all, several at a time, and returns how
// often it succeeded, and the last failure.
func connectOften(t *testing.T, s *Session, server *gittest.SSHD) (succeeded int, failure string) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	turns := make(chan struct{}, 3)
	for range connects {
		wg.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			output, err := connect(t, s, server)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && strings.TrimSpace(output) == "connected" {
				succeeded++
			} else {
				failure = fmt.Sprintf("%v: %s", err, output)
			}
		})
	}
	wg.Wait()
	return succeeded, failure
}

// C44: a host is known by one of its keys, or by no name that can be read, next to
// another host and lines of every kind.
func TestKnownHostsOfSeveralHosts(t *testing.T) {
	t.Parallel()
	client := gittest.NewKey(t, "ed25519")
	keys := func() []gittest.Key {
		return []gittest.Key{gittest.NewKey(t, "rsa"), gittest.NewKey(t, "ed25519"), gittest.NewKey(t, "ecdsa")}
	}
	first := gittest.StartSSHD(t, gittest.SSHDOptions{HostKeys: keys(), AuthorizedKeys: []string{client.Authorized}})
	second := gittest.StartSSHD(t, gittest.SSHDOptions{Address: "127.0.0.2", HostKeys: keys(), AuthorizedKeys: []string{client.Authorized}})
	knownHosts := strings.ReplaceAll("# the hosts of this test\n\n"+
		"@cert-authority *.example.org "+gittest.NewKey(t, "ed25519").Authorized+
		"@revoked * "+gittest.NewKey(t, "ed25519").Authorized+
		hashed(t, first.KnownHosts("rsa"))+
		strings.TrimSuffix(second.KnownHosts("ed25519"), "\n"), "\n", "\r\n")
	c := mustParse(t, map[string]string{"ssh-privatekey": client.PEM, "known_hosts": knownHosts})
	for _, server := range []*gittest.SSHD{first, second} {
		s := serve(t, c, server.URL("/r"), nil)
		if succeeded, failure := connectOften(t, s, server); succeeded != connects {
			t.Errorf("%s: %d of %d connections succeed; %s", server.Name(), succeeded, connects, failure)
		}
	}
}

// C44: servers that take RSA keys with SHA-2 alone, and keys in every format.
func TestKeysAndAlgorithms(t *testing.T) {
	t.Parallel()
	hostKeys := []gittest.Key{gittest.NewKey(t, "rsa"), gittest.NewKey(t, "ed25519")}
	for _, row := range []struct {
		keyType string
		config  []string
	}{
		{"rsa", []string{"HostKeyAlgorithms rsa-sha2-512", "PubkeyAcceptedAlgorithms rsa-sha2-256"}},
		{"rsa", []string{"HostKeyAlgorithms rsa-sha2-256"}},
		{"ed25519", []string{"HostKeyAlgorithms rsa-sha2-512"}},
		{"ecdsa", nil},
	} {
		client := gittest.NewKey(t, row.keyType)
		server := gittest.StartSSHD(t, gittest.SSHDOptions{HostKeys: hostKeys, AuthorizedKeys: []string{client.Authorized}, Config: row.config})
		all := formats(t, client)
		for _, format := range []string{"OpenSSH", "PKCS#8 with CRLF"} {
			text := all[format]
			c := mustParse(t, map[string]string{"ssh-privatekey": text, "known_hosts": server.KnownHosts("rsa", "ed25519")})
			s := serve(t, c, server.URL("/r"), nil)
			if output, err := connect(t, s, server); err != nil {
				t.Errorf("%s, %s, %q: %v, %s", row.keyType, format, row.config, err, output)
			}
			if s.Refused() || s.Explanation() != "" {
				t.Errorf("%s, %s: after a success it says %v, %q", row.keyType, format, s.Refused(), s.Explanation())
			}
		}
	}
}

// C44: a host key that is wrong, revoked or unknown is never accepted.
func TestHostKeysThatAreNotTrusted(t *testing.T) {
	t.Parallel()
	client, other := gittest.NewKey(t, "ed25519"), gittest.NewKey(t, "ed25519")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{client.Authorized}})
	fingerprint := ssh.FingerprintSHA256(server.HostKeys[0].Public)
	wrong := server.Name() + " " + other.Authorized
	for name, knownHosts := range map[string]string{
		"wrong":                  wrong,
		"wrong, hashed":          hashed(t, wrong),
		"revoked":                server.KnownHosts() + "@revoked * " + server.HostKeys[0].Authorized,
		"empty":                  "",
		"a comment":              "# nothing",
		"of another address":     "[127.0.0.2]:" + strconv.Itoa(server.Port) + " " + server.HostKeys[0].Authorized,
		"of another port":        "[127.0.0.1]:1 " + server.HostKeys[0].Authorized,
		"an authority's":         "@cert-authority * " + server.HostKeys[0].Authorized,
		"of another type":        server.Name() + " " + gittest.NewKey(t, "rsa").Authorized,
		"no known_hosts at all":  "secret",
		"a line that is cut off": strings.TrimSuffix(server.KnownHosts(), "\n")[:40],
	} {
		c := mustParse(t, map[string]string{"ssh-privatekey": client.PEM, "known_hosts": knownHosts})
		hosts := openHosts(t)
		s := serve(t, c, server.URL("/r"), hosts)
		output, err := connect(t, s, server)
		if err == nil || strings.Contains(output, "connected") {
			t.Errorf("%s: it is trusted", name)
		}
		if output == "" {
			t.Errorf("%s: ssh says nothing", name)
		}
		said := s.Explanation()
		if !strings.Contains(said, fmt.Sprintf("127.0.0.1:%d", server.Port)) || !strings.Contains(said, fingerprint) || !strings.Contains(said, "known_hosts") {
			t.Errorf("%s: the explanation lacks host, port or fingerprint: %q", name, said)
		}
		if s.Refused() {
			t.Errorf("%s: it is reported as a refused credential", name)
		}
		if kept, _ := hosts.trusted(server.Name()); len(kept) > 0 {
			t.Errorf("%s: the key was kept", name)
		}
	}
}

func TestHostCertificate(t *testing.T) {
	t.Parallel()
	client, host, authority := gittest.NewKey(t, "ed25519"), gittest.NewKey(t, "ed25519"), gittest.NewKey(t, "rsa")
	signer, err := ssh.NewSignerFromSigner(authority.Private)
	if err != nil {
		t.Fatal(err)
	}
	certificate := &ssh.Certificate{Key: host.Public, CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"}, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, signer); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "host-cert.pub")
	if err := os.WriteFile(file, ssh.MarshalAuthorizedKey(certificate), 0o600); err != nil {
		t.Fatal(err)
	}
	server := gittest.StartSSHD(t, gittest.SSHDOptions{
		HostKeys: []gittest.Key{host}, AuthorizedKeys: []string{client.Authorized}, Config: []string{"HostCertificate " + file},
	})
	for name, data := range map[string]map[string]string{
		"its authority is known":    {"ssh-privatekey": client.PEM, "known_hosts": "@cert-authority * " + authority.Authorized},
		"its plain key is known":    {"ssh-privatekey": client.PEM, "known_hosts": server.KnownHosts()},
		"its plain key comes first": {"ssh-privatekey": client.PEM},
	} {
		hosts := openHosts(t)
		s := serve(t, mustParse(t, data), server.URL("/r"), hosts)
		for range 2 {
			if output, err := connect(t, s, server); err != nil {
				t.Errorf("%s: %v, %s %s", name, err, output, s.Explanation())
			}
		}
	}
}

func TestServerRefusesTheKey(t *testing.T) {
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{gittest.NewKey(t, "ed25519").Authorized}})
	s := serve(t, mustParse(t, map[string]string{"ssh-privatekey": gittest.NewKey(t, "rsa").PEM}), server.URL("/r"), openHosts(t))
	output, err := connect(t, s, server)
	if err == nil || !s.Refused() || !strings.Contains(output, "Permission denied") {
		t.Errorf("a key that is not authorized: %v, refused %v, %s", err, s.Refused(), output)
	}
	if said := s.Explanation(); said != "" {
		t.Errorf("it is blamed on the host: %q", said)
	}
}

func TestServerThatIsNotThereRefusesNothing(t *testing.T) {
	server := gittest.StartSSHD(t, gittest.SSHDOptions{})
	s := serve(t, mustParse(t, map[string]string{"ssh-privatekey": gittest.NewKey(t, "rsa").PEM}), server.URL("/r"), openHosts(t))
	server.Port = 1
	if output, err := connect(t, s, server); err == nil || s.Refused() || s.Explanation() != "" {
		t.Errorf("a port that nobody listens on: %v, refused %v, %q, %s", err, s.Refused(), s.Explanation(), output)
	}
}

// TestKeyIsNowhere: no file, command line, environment or output has the key while ssh
// uses it.
func TestKeyIsNowhere(t *testing.T) {
	client := gittest.NewKey(t, "rsa")
	search := gittest.SearchSecrets(t, client.Secrets()...)
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{client.Authorized}})
	hosts := openHosts(t)
	s := serve(t, mustParse(t, map[string]string{"ssh-privatekey": client.PEM}), server.URL("/r"), hosts)
	cmd := sshCommand(t, s, server, "env; cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return search.Saw("ssh") && search.Saw("cat") })
	search.Files(t, s.dir, hosts.dir)
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	search.Text(t, "what ssh prints", output.String())
	search.Text(t, "the server's log", server.Log())
	search.Text(t, "ssh's arguments", strings.Join(append(s.SSHOptions(), s.Environment()...), " "))
}

// TestNameReachedAtACheckedAddress: who resolved the name itself gives ssh the address
// (HostName) and the name by which the key is known (HostKeyAlias, which holds the port).
func TestNameReachedAtACheckedAddress(t *testing.T) {
	client := gittest.NewKey(t, "ed25519")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{client.Authorized}})
	name := "[forge.example]:" + strconv.Itoa(server.Port)
	knownHosts := strings.ReplaceAll(server.KnownHosts(), server.Name(), name)
	for what, data := range map[string]map[string]string{
		"first seen": {"ssh-privatekey": client.PEM},
		"known":      {"ssh-privatekey": client.PEM, "known_hosts": knownHosts},
	} {
		hosts := openHosts(t)
		s := serve(t, mustParse(t, data), fmt.Sprintf("ssh://%s@forge.example:%d/r", server.User, server.Port), hosts)
		args := append([]string{"-o", "HostName=127.0.0.1", "-o", "HostKeyAlias=" + name}, s.SSHOptions()...)
		cmd := exec.CommandContext(t.Context(), "ssh", append(args, "-p", strconv.Itoa(server.Port), server.User+"@forge.example", "true")...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), quickRace}
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v, %s, %s", what, err, output, s.Explanation())
		}
		if kept, err := hosts.trusted(name); err != nil || (len(kept) == 1) != (what == "first seen") {
			t.Errorf("%s: kept is %v, %v", what, kept, err)
		}
	}
}
