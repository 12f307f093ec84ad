package credential

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"liken.sh/gitvolume/internal/gittest"
)

func TestAgentOnlySigns(t *testing.T) {
	for _, keyType := range []string{"rsa", "ed25519", "ecdsa"} {
		key := gittest.NewKey(t, keyType)
		s := serve(t, mustParse(t, map[string]string{"ssh-privatekey": key.PEM}), "git@h:r", openHosts(t))
		conn, err := net.Dial("unix", filepath.Join(s.dir, agentSocket))
		if err != nil {
			t.Fatal(err)
		}
		client := agent.NewClient(conn)
		keys, err := client.List()
		if err != nil || len(keys) != 1 || string(keys[0].Blob) != string(key.Public.Marshal()) {
			t.Fatalf("%s: it lists %v, %v", keyType, keys, err)
		}
		if !s.Refused() {
			t.Errorf("%s: a key that was offered and not signed for is not refused", keyType)
		}
		signs := map[agent.SignatureFlags]string{agent.SignatureFlagRsaSha256: ssh.KeyAlgoRSASHA256, agent.SignatureFlagRsaSha512: ssh.KeyAlgoRSASHA512, 0: ""}
		if keyType != "rsa" {
			signs = map[agent.SignatureFlags]string{0: key.Public.Type()}
		}
		for flags, algorithm := range signs {
			signature, err := client.SignWithFlags(key.Public, []byte("data"), flags)
			if algorithm == "" {
				if err == nil {
					t.Errorf("%s: it signs with SHA-1", keyType)
				}
				continue
			}
			if err != nil || signature.Format != algorithm || key.Public.Verify([]byte("data"), signature) != nil {
				t.Errorf("%s: with flags %d the signature is %v, %v", keyType, flags, signature, err)
			}
		}
		if s.Refused() {
			t.Errorf("%s: a key that was signed for is refused", keyType)
		}
		other := gittest.NewKey(t, "ed25519")
		if _, err := client.Sign(other.Public, []byte("data")); err == nil {
			t.Errorf("%s: it signs for another key", keyType)
		}
		for what, err := range map[string]error{
			"add": client.Add(agent.AddedKey{PrivateKey: other.Private}), "remove": client.Remove(key.Public), "remove all": client.RemoveAll(),
			"lock": client.Lock([]byte("x")), "unlock": client.Unlock([]byte("x")),
		} {
			if err == nil {
				t.Errorf("%s: it lets a client %s", keyType, what)
			}
		}
		if _, err := client.Extension("session-bind@openssh.com", nil); err == nil {
			t.Errorf("%s: it takes an extension", keyType)
		}
		if keys, err := client.List(); err != nil || len(keys) != 1 {
			t.Errorf("%s: in the end it lists %v, %v", keyType, keys, err)
		}
		s.Close()
		if _, err := client.List(); err == nil {
			t.Errorf("%s: it answers after its end", keyType)
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	key := gittest.NewKey(t, "ed25519")
	ca := certificate(t)
	for _, row := range []struct {
		data map[string]string
		url  string
		has  int // Directories and files.
	}{
		{map[string]string{"ssh-privatekey": key.PEM, "known_hosts": "h x"}, "git@h:r", 4},
		{map[string]string{"token": testToken, "ca.crt": ca}, "https://h/r", 3},
	} {
		dir := shortDir(t)
		serving := Serving{Dir: dir, Helper: helperCommand(t), URL: parseURL(t, row.url), Bundles: NewBundles(dir)}
		c := mustParse(t, row.data)
		for range 2 {
			s, err := c.Serve(serving)
			if err != nil {
				t.Fatal(err)
			}
			checkModes(t, dir, row.has)
			s.Close()
			s.Close()
		}
		// What a crash leaves: the files of a session that nobody closes.
		if _, err := c.Serve(serving); err != nil {
			t.Fatal(err)
		}
		search := gittest.SearchSecrets(t, append(key.Secrets(), testToken)...)
		search.Files(t, dir)
		kept := filepath.Join(dir, "other")
		if err := os.WriteFile(kept, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := RemoveSessions(dir); err != nil {
			t.Error(err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "other" {
			t.Errorf("%s: there are %v, %v", row.url, entries, err)
		}
	}
}

// checkModes wants so many directories and files, the ones of 0700 and the others of 0600.
func checkModes(t *testing.T, dir string, want int) {
	t.Helper()
	above, _ := filepath.Glob(filepath.Join(dir, "*"))
	below, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	if len(above)+len(below) != want {
		t.Fatalf("there are %q and %q, want %d", above, below, want)
	}
	for _, path := range append(above, below...) {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() && info.Mode().Perm() != 0o700 || info.Mode().IsRegular() && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
	}
}

// TestNoDirectoryToServeFrom: its name, another each time, is not in what Events say.
func TestNoDirectoryToServeFrom(t *testing.T) {
	gone := filepath.Join(shortDir(t), "gone")
	c := mustParse(t, map[string]string{"ssh-privatekey": gittest.NewKey(t, "ed25519").PEM})
	_, err := c.Serve(Serving{Dir: gone, Helper: helperCommand(t), URL: parseURL(t, "git@h:r"), Hosts: openHosts(t)})
	trusting := mustParse(t, map[string]string{"token": testToken, "known_hosts": ""})
	_, written := (&Session{dir: gone, credential: trusting}).writeHosts()
	_, _, bundled := NewBundles(gone).take("")
	for want, err := range map[string]error{
		"lend a credential: make a directory for the session: no such file or directory": err,
		`write "known_hosts": no such file or directory`:                                 written,
		"write the certificates: no such file or directory":                              bundled,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestServeRefuses(t *testing.T) {
	key := mustParse(t, map[string]string{"ssh-privatekey": gittest.NewKey(t, "ed25519").PEM})
	trusting := mustParse(t, map[string]string{"token": testToken, "ca.crt": certificate(t)})
	if s, err := trusting.Serve(Serving{Dir: shortDir(t), Helper: helperCommand(t), URL: parseURL(t, "https://h/r")}); err == nil || s != nil {
		t.Errorf("nowhere for certificates: it is served, %v", err)
	}
	u := parseURL(t, "git@h:r")
	long := filepath.Join(shortDir(t), strings.Repeat("d", 90))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, serving := range map[string]Serving{
		"a path too long for a socket": {Dir: long, Helper: helperCommand(t), URL: u, Hosts: openHosts(t)},
		"a path with a blank":          {Dir: "/tmp/a b", Helper: helperCommand(t), URL: u, Hosts: openHosts(t)},
		"a helper with a quote":        {Dir: shortDir(t), Helper: []string{"/bin/x'"}, URL: u, Hosts: openHosts(t)},
		"no helper":                    {Dir: shortDir(t), URL: u, Hosts: openHosts(t)},
		"nowhere for host keys":        {Dir: shortDir(t), Helper: helperCommand(t), URL: u},
		"no directory":                 {Dir: shortDir(t) + "/not", Helper: helperCommand(t), URL: u, Hosts: openHosts(t)},
	} {
		if s, err := key.Serve(serving); err == nil || s != nil {
			t.Errorf("%s: it is served, %v", name, err)
		}
	}
	if entries, err := os.ReadDir(long); err != nil || len(entries) > 0 {
		t.Errorf("what is refused leaves %v, %v", entries, err)
	}
	s, err := Anonymous().Serve(Serving{URL: parseURL(t, "git://h/r")})
	if err != nil || s.GitConfig() != nil || s.SSHOptions() != nil || s.Environment() != nil || s.Refused() {
		t.Errorf("git:// without a credential: %+v, %v", s, err)
	}
	s.Close()
}
