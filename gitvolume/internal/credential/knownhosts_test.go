package credential

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"liken.sh/gitvolume/internal/gittest"
)

func TestFirstKeyIsKeptAndAChangedOneRefused(t *testing.T) {
	client, hosts := gittest.NewKey(t, "ed25519"), openHosts(t)
	c := mustParse(t, map[string]string{"ssh-privatekey": client.PEM})
	server := gittest.StartSSHD(t, gittest.SSHDOptions{
		HostKeys: []gittest.Key{gittest.NewKey(t, "rsa"), gittest.NewKey(t, "ed25519")}, AuthorizedKeys: []string{client.Authorized},
	})
	if output, err := connect(t, serve(t, c, server.URL("/r"), hosts), server); err != nil {
		t.Fatalf("first: %v, %s", err, output)
	}
	kept, err := os.ReadFile(filepath.Join(hosts.dir, knownHostsFile))
	if err != nil || strings.Count(string(kept), "\n") != 1 || !strings.HasPrefix(string(kept), server.Name()+" ") {
		t.Fatalf("kept is %q, %v", kept, err)
	}
	// After a restart of the driver.
	if hosts, err = OpenKnownHosts(hosts.dir); err != nil {
		t.Fatal(err)
	}
	if output, err := connect(t, serve(t, c, server.URL("/r"), hosts), server); err != nil {
		t.Errorf("again: %v, %s", err, output)
	}
	other := gittest.NewKey(t, "ed25519")
	if err := hosts.write(line(server.Name(), other.Public)); err != nil {
		t.Fatal(err)
	}
	s := serve(t, c, server.URL("/r"), hosts)
	output, err := connect(t, s, server)
	if err == nil || !strings.Contains(s.Explanation(), "not the one first seen") || !strings.HasSuffix(s.Explanation(), "delete its line from "+hosts.path()) || !strings.Contains(output, "Host key verification failed") {
		t.Errorf("another key is trusted: %v, %q, %s", err, s.Explanation(), output)
	}
	if keys, err := hosts.trusted(server.Name()); err != nil || len(keys) != 1 || ssh.FingerprintSHA256(keys[0]) != ssh.FingerprintSHA256(other.Public) {
		t.Errorf("the kept key changes to %v, %v", keys, err)
	}
}

// TestFirstKeysSeenTogether: connections that are made at the same time agree on one key.
func TestFirstKeysSeenTogether(t *testing.T) {
	hosts := openHosts(t)
	var keys []ssh.PublicKey
	for range 8 {
		keys = append(keys, gittest.NewKey(t, "ed25519").Public)
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			server := []string{"a", "[b]:22", "[::1]:2222"}[i%3]
			trusted, err := hosts.firstSeen(server, keys[i%len(keys)])
			kept, err2 := hosts.trusted(server)
			if err != nil || err2 != nil || len(trusted) != 1 || len(kept) != 1 || string(trusted[0].Marshal()) != string(kept[0].Marshal()) {
				t.Errorf("%s: trusted %v, kept %v, %v %v", server, trusted, kept, err, err2)
			}
		})
	}
	wg.Wait()
	content, err := os.ReadFile(filepath.Join(hosts.dir, knownHostsFile))
	if err != nil || strings.Count(string(content), "\n") != 3 {
		t.Errorf("kept is %q, %v", content, err)
	}
}

func TestKnownHostsThatCannotBeKept(t *testing.T) {
	client, hosts := gittest.NewKey(t, "ed25519"), openHosts(t)
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{client.Authorized}})
	for name, damage := range map[string]func() error{
		"a line that is damaged":   func() error { return hosts.write("other ssh-rsa x\n" + server.Name() + " ssh-ed25519 AAAA") },
		"a directory that is gone": func() error { return os.RemoveAll(hosts.dir) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		s := serve(t, mustParse(t, map[string]string{"ssh-privatekey": client.PEM}), server.URL("/r"), hosts)
		output, err := connect(t, s, server)
		if err == nil || s.Explanation() == "" || s.Refused() {
			t.Errorf("%s: %v, %q, refused %v, %s", name, err, s.Explanation(), s.Refused(), output)
		}
		if err := os.MkdirAll(hosts.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := hosts.write(""); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKnownHostsWithoutAFinalNewline(t *testing.T) {
	hosts := openHosts(t)
	a, b := gittest.NewKey(t, "ed25519").Public, gittest.NewKey(t, "rsa").Public
	if err := hosts.write("# by hand\n" + strings.TrimSpace(line("a", a))); err != nil {
		t.Fatal(err)
	}
	if _, err := hosts.firstSeen("b", b); err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]ssh.PublicKey{"a": a, "b": b} {
		if keys, err := hosts.trusted(server); err != nil || len(keys) != 1 || string(keys[0].Marshal()) != string(want.Marshal()) {
			t.Errorf("%s is trusted with %v, %v", server, keys, err)
		}
	}
}

// TestKnownHostsByHand: a line in any form of OpenSSH's is the server's; the first key seen
// must not be trusted beside it.
func TestKnownHostsByHand(t *testing.T) {
	key, other := gittest.NewKey(t, "ed25519"), gittest.NewKey(t, "ed25519")
	const server = "[git.example.org]:2222"
	for name, row := range map[string]struct {
		line           string
		trusted, fails bool
	}{
		"plain":                     {server + " " + key.Authorized, true, false},
		"a tab":                     {server + "\t" + key.Authorized, true, false},
		"blanks before it":          {"  " + server + "  " + key.Authorized, true, false},
		"with its address":          {"192.0.2.1," + server + " " + key.Authorized, true, false},
		"hashed":                    {hashed(t, server+" "+key.Authorized), true, false},
		"a pattern":                 {"[*.Example.org]:2222 " + key.Authorized, true, false},
		"a pattern that excepts it": {"[*.example.org]:*,!" + server + " " + key.Authorized, false, false},
		"another port":              {"[git.example.org]:22 " + key.Authorized, false, false},
		"another host, hashed":      {hashed(t, "git.example.org "+key.Authorized), false, false},
		"revoked":                   {"@revoked " + server + " " + key.Authorized, false, true},
		"revoked everywhere":        {"@revoked * " + key.Authorized, false, true},
		"an authority":              {"@cert-authority [*.example.org]:2222 " + key.Authorized, false, true},
		"another's, revoked":        {"@revoked example.net " + key.Authorized, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := openHosts(t)
			if err := hosts.write(row.line); err != nil {
				t.Fatal(err)
			}
			keys, err := hosts.firstSeen(server, other.Public)
			want := other.Public
			if row.trusted {
				want = key.Public
			}
			if row.fails {
				if err == nil || len(keys) > 0 {
					t.Errorf("trusted is %v", keys)
				}
				return
			}
			if err != nil || len(keys) != 1 || string(keys[0].Marshal()) != string(want.Marshal()) {
				t.Errorf("trusted is %v, %v", keys, err)
			}
		})
	}
}
