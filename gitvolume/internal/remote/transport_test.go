package remote

import (
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
)

func TestSSHRefuses(t *testing.T) {
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	key, other := gittest.NewKey(t, "ed25519"), gittest.NewKey(t, "ed25519")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	url := server.URL(b.Dir)
	wrong := server.Name() + " " + other.Authorized
	more := gittest.StartSSHD(t, gittest.SSHDOptions{
		AuthorizedKeys: []string{key.Authorized},
		Config:         []string{"PasswordAuthentication yes", "AuthenticationMethods publickey,password"},
	})
	for _, row := range []struct {
		name   string
		remote Remote
		want   error
	}{
		{"the right key, which is not enough", lend(t, more.URL(b.Dir), map[string]string{"ssh-privatekey": key.PEM, "known_hosts": more.KnownHosts()}), ErrAuthentication},
		{"the right key", lend(t, url, map[string]string{"ssh-privatekey": key.PEM, "known_hosts": server.KnownHosts()}), nil},
		{"the first host key seen", lend(t, url, map[string]string{"ssh-privatekey": key.PEM}), nil},
		{"another key", lend(t, url, map[string]string{"ssh-privatekey": other.PEM, "known_hosts": server.KnownHosts()}), ErrAuthentication},
		{"another host key", lend(t, url, map[string]string{"ssh-privatekey": key.PEM, "known_hosts": wrong}), ErrIdentity},
		{"no known host", lend(t, url, map[string]string{"ssh-privatekey": key.PEM, "known_hosts": ""}), ErrIdentity},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCommand(t)
			_, err := c.List(t.Context(), row.remote, "main")
			if row.want == nil {
				check(t, err)
				return
			}
			wantError(t, err, row.want)
			if fingerprint := ssh.FingerprintSHA256(server.HostKeys[0].Public); errors.Is(row.want, ErrIdentity) && !strings.Contains(err.Error(), fingerprint) {
				t.Errorf("the message names no %s: %v", fingerprint, err)
			}
			_, err = c.Fetch(t.Context(), Request{Dir: gittest.NewBare(t).Dir, Remote: row.remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			wantError(t, err, row.want)
		})
	}
}

func TestHTTPSRefuses(t *testing.T) {
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	ca := gittest.NewCA(t)
	options := gittest.HTTPOptions{User: "git", Password: token, CA: ca}
	server := gittest.StartHTTP(t, filepath.Dir(b.Dir), options)
	url := server.URL("/r.git")
	nobody := at(t, url)
	nobody.Session = serve(t, credential.Anonymous(), nobody.URL)
	open := gittest.StartHTTP(t, filepath.Dir(b.Dir), gittest.HTTPOptions{User: "git", Password: token})
	for _, row := range []struct {
		name   string
		remote Remote
		want   error
	}{
		{"the right token", lend(t, url, map[string]string{"token": token, "ca.crt": ca.PEM}), nil},
		{"another token", lend(t, url, map[string]string{"token": "another token", "ca.crt": ca.PEM}), ErrAuthentication},
		{"an authority that is not known", lend(t, url, map[string]string{"token": token}), ErrIdentity},
		{"another authority", lend(t, url, map[string]string{"token": token, "ca.crt": gittest.NewCA(t).PEM}), ErrIdentity},
		{"nobody", nobody, ErrIdentity},
		{"nobody, without TLS", at(t, open.URL("/r.git")), ErrAuthentication},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCommand(t)
			_, err := c.List(t.Context(), row.remote, "main")
			if row.want == nil {
				check(t, err)
				return
			}
			wantError(t, err, row.want)
			_, err = c.Fetch(t.Context(), Request{Dir: gittest.NewBare(t).Dir, Remote: row.remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			wantError(t, err, row.want)
		})
	}
}

// A credential that is not given has its reason told, in words that are the same each time.
func TestCredentialThatIsNotGiven(t *testing.T) {
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	root := filepath.Dir(b.Dir)
	ca := gittest.NewCA(t)
	guarded := gittest.StartHTTP(t, root, gittest.HTTPOptions{User: "git", Password: token, CA: ca, Address: "127.0.0.3"})
	first := gittest.StartHTTP(t, root, gittest.HTTPOptions{CA: ca, Around: around(func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, guarded.URL(r.URL.String()), http.StatusMovedPermanently)
		return true
	})})
	open := at(t, gittest.StartHTTP(t, root, gittest.HTTPOptions{User: "git", Password: token}).URL("/r.git"))
	open.Session = serve(t, credential.Anonymous(), open.URL)
	led := lend(t, first.URL("/r.git"), map[string]string{"token": token, "ca.crt": ca.PEM})
	for _, row := range []struct {
		name   string
		remote Remote
		want   string
	}{
		{"there is none", open, "the server wants one, and there is none"},
		{"it is for another server", led, "a server wants one that the address leads to, and the token is for " + led.URL.Host + ":" + strconv.Itoa(led.URL.Port) + " alone"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := newCommand(t).List(t.Context(), row.remote, "main")
			wantError(t, err, ErrAuthentication)
			if err != nil && !strings.HasSuffix(err.Error(), "the remote refuses the credential: "+row.want) {
				t.Errorf("the error is %q", err)
			}
		})
	}
}

// TestRedirect is C45.
func TestRedirect(t *testing.T) {
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	root := filepath.Dir(b.Dir)
	ca := gittest.NewCA(t)
	secret := map[string]string{"token": token, "ca.crt": ca.PEM}
	plain := gittest.StartHTTP(t, root, gittest.HTTPOptions{})
	guarded := gittest.StartHTTP(t, root, gittest.HTTPOptions{User: "git", Password: token, CA: ca, Address: "127.0.0.3"})
	secure := gittest.StartHTTP(t, root, gittest.HTTPOptions{CA: ca, Address: "127.0.0.2"})
	to := func(other *gittest.HTTP) func(http.Handler) http.Handler {
		return around(func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, other.URL(r.URL.String()), http.StatusMovedPermanently)
			return true
		})
	}
	for _, row := range []struct {
		name    string
		options gittest.HTTPOptions
		to      *gittest.HTTP
		want    error
		reached bool
	}{
		{"from http to https", gittest.HTTPOptions{}, secure, nil, true},
		{"from https to http", gittest.HTTPOptions{CA: ca}, plain, ErrFailed, false},
		{"to another host", gittest.HTTPOptions{CA: ca}, secure, nil, true},
		// git follows only the answer to what it asks first, which here is who it is.
		{"to another host, after the token was given", gittest.HTTPOptions{CA: ca, User: "git", Password: token}, secure, ErrFailed, true},
		{"to another host, which asks for one", gittest.HTTPOptions{CA: ca}, guarded, ErrAuthentication, true},
		{"to another host, after the token was given, which asks for one", gittest.HTTPOptions{CA: ca, User: "git", Password: token}, guarded, ErrAuthentication, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.options.Around = to(row.to)
			first := gittest.StartHTTP(t, root, row.options)
			before := len(row.to.Requests())
			remote := lend(t, first.URL("/r.git"), secret)
			_, err := newCommand(t).Fetch(t.Context(), Request{Dir: gittest.NewBare(t).Dir, Remote: remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			if row.want == nil {
				check(t, err)
			} else {
				wantError(t, err, row.want)
			}
			requests := row.to.Requests()[before:]
			if len(requests) > 0 != row.reached {
				t.Errorf("the other server got %d requests", len(requests))
			}
			for _, request := range requests {
				if request.Header.Get("Authorization") != "" {
					t.Error("the other server was sent the token")
				}
			}
		})
	}
}

// TestProxy is C45, for fetches and pushes.
func TestProxy(t *testing.T) {
	ca := gittest.NewCA(t)
	for _, row := range []struct {
		name        string
		ca          *gittest.CA
		environment func(proxy, closed string) []string
		used        string
		want        error
	}{
		{"HTTPS_PROXY", ca, func(p, _ string) []string { return []string{"HTTPS_PROXY=" + p} }, "CONNECT", nil},
		{"https_proxy", ca, func(p, c string) []string { return []string{"https_proxy=" + p, "HTTPS_PROXY=http://" + c} }, "CONNECT", nil},
		{"http_proxy", nil, func(p, _ string) []string { return []string{"http_proxy=" + p} }, "GET", nil},
		{"HTTP_PROXY, as curl", nil, func(p, _ string) []string { return []string{"HTTP_PROXY=" + p} }, "", nil},
		{"ALL_PROXY", nil, func(p, _ string) []string { return []string{"ALL_PROXY=" + p} }, "GET", nil},
		{"http_proxy for https", ca, func(p, _ string) []string { return []string{"http_proxy=" + p} }, "", nil},
		{"NO_PROXY", ca, func(p, _ string) []string { return []string{"HTTPS_PROXY=" + p, "NO_PROXY=a.example, 127.0.0.0/8"} }, "", nil},
		{"NO_PROXY for others", ca, func(p, _ string) []string { return []string{"HTTPS_PROXY=" + p, "NO_PROXY=a.example"} }, "CONNECT", nil},
		{"a proxy that is not there", ca, func(_, c string) []string { return []string{"HTTPS_PROXY=http://" + c} }, "", ErrUnreachable},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := gittest.NewBare(t)
			b.Grow("main", "f", "1")
			proxy := gittest.StartProxy(t)
			c := newCommand(t, func(s *Settings) {
				s.Environment = append(s.Environment, row.environment(proxy.URL, gittest.Closed(t))...)
			})
			p := newPushing(t, c, b, httpRemote(t, b, gittest.HTTPOptions{User: "git", Password: token, CA: row.ca}))
			_, err := c.Fetch(t.Context(), Request{Dir: p.store.Dir, Remote: p.remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			if row.want != nil {
				wantError(t, err, row.want)
				return
			}
			check(t, err)
			_, err = p.push(p.update("refs/heads/main", "2"), nil)
			check(t, err)
			seen := strings.Join(proxy.Seen(), "\n")
			if row.used == "" && seen != "" || !strings.Contains(seen, row.used) {
				t.Errorf("the proxy saw %q", seen)
			}
		})
	}
}

func TestProxyRefuses(t *testing.T) {
	b := gittest.NewBare(t)
	refusing, proxy := gittest.StartRefusingProxy(t), gittest.StartProxy(t)
	remote := httpRemote(t, b, gittest.HTTPOptions{CA: gittest.NewCA(t)})
	closed := at(t, "https://"+gittest.Closed(t)+"/r")
	for _, row := range []struct {
		name, proxy string
		remote      Remote
		want        error
	}{
		{"it connects to nothing", refusing.URL, remote, ErrUnreachable},
		{"the server is not there", proxy.URL, closed, ErrUnreachable},
		{"the server has another authority", proxy.URL, remote, ErrIdentity},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCommand(t, func(s *Settings) { s.Environment = append(s.Environment, "HTTPS_PROXY="+row.proxy) })
			_, err := c.List(t.Context(), row.remote, "main")
			wantError(t, err, row.want)
		})
	}
}

// TestSecretsStayInMemory fetches, pushes and fails with each kind of credential, with a
// server that repeats what it was sent.
func TestSecretsStayInMemory(t *testing.T) {
	key := gittest.NewKey(t, "rsa")
	search := gittest.SearchSecrets(t, append(key.Secrets(), token)...)
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	ca := gittest.NewCA(t)
	repeat := false
	server := gittest.StartHTTP(t, filepath.Dir(b.Dir), gittest.HTTPOptions{
		User: "git", Password: token, CA: ca,
		Around: around(func(w http.ResponseWriter, r *http.Request) bool {
			if repeat {
				_, password, _ := r.BasicAuth()
				long := strings.Repeat("x ", 500) + strings.Repeat("y", 10)
				http.Error(w, "is "+password+" yours?\n"+r.Header.Get("Authorization")+"\n"+long+password, http.StatusForbidden)
			}
			return repeat
		}),
	})
	sshd := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	c, store := newCommand(t), gittest.NewBare(t)
	for name, remote := range map[string]Remote{
		"ssh":   lend(t, sshd.URL(b.Dir), map[string]string{"ssh-privatekey": key.PEM, "known_hosts": sshd.KnownHosts()}),
		"https": lend(t, server.URL("/r.git"), map[string]string{"token": token, "ca.crt": ca.PEM}),
	} {
		p := &pushing{t: t, c: c, b: b, store: store, remote: remote}
		for range 3 {
			_, err := c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			check(t, err)
		}
		_, err := p.push(p.update("refs/heads/main", "by "+name), nil)
		check(t, err)
		search.Files(t, c.settings.Directory, store.Dir)
	}
	repeat = true
	_, err := c.List(t.Context(), lend(t, server.URL("/r.git"), map[string]string{"token": token, "ca.crt": ca.PEM}), "main")
	wantError(t, err, ErrAuthentication)
	search.Text(t, "an error", err.Error())
	if !strings.Contains(err.Error(), "is *** yours?") {
		t.Errorf("the server's words are not told: %v", err)
	}
	for _, program := range []string{"git", "ssh", "liken-git-ssh"} {
		if !search.Saw(program) {
			t.Errorf("%s was not looked at", program)
		}
	}
}
