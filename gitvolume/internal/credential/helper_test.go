package credential

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
)

const testToken = "token-of-this-test"

// gitCommand is git with a session's configuration, and nothing of the machine's.
func gitCommand(t testing.TB, s *Session, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	empty := filepath.Join(dir, "gitconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var config []string
	for _, pair := range s.GitConfig() {
		config = append(config, "-c", pair[0]+"="+pair[1])
	}
	cmd := exec.CommandContext(t.Context(), "git", append(config, args...)...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + empty, "LC_ALL=C", quickRace,
	}, s.Environment()...)
	return cmd
}

func credentialFill(t testing.TB, s *Session, question string) (string, error) {
	t.Helper()
	cmd := gitCommand(t, s, "credential", "fill")
	cmd.Stdin = strings.NewReader(question)
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func TestTokenIsForTheURLsServerAlone(t *testing.T) {
	c := mustParse(t, map[string]string{"token": testToken, "username": "bot"})
	for _, row := range []struct {
		url, question string
		given         bool
	}{
		{"https://h.example/r", "protocol=https\nhost=h.example\n", true},
		{"https://h.example/r", "protocol=https\nhost=h.example\npath=other\n", true},
		{"https://h.example/r", "protocol=https\nhost=H.EXAMPLE.:443\n", true},
		{"https://h.example/r", "protocol=https\nhost=h.example\nusername=bot\n", true},
		{"https://h.example/r", "protocol=https\nhost=h.example\nusername=root\n", false},
		{"https://h.example/r", "protocol=http\nhost=h.example\n", false},
		{"https://h.example/r", "protocol=http\nhost=h.example:443\n", false},
		{"https://h.example/r", "protocol=https\nhost=h.example:8443\n", false},
		{"https://h.example/r", "protocol=https\nhost=evil.example\n", false},
		{"https://h.example/r", "protocol=https\nhost=h.example.evil.org\n", false},
		{"https://h.example/r", "protocol=https\nhost=x.h.example\n", false},
		{"https://h.example/r", "protocol=ssh\nhost=h.example\n", false},
		{"https://h.example:8443/r", "protocol=https\nhost=h.example:8443\n", true},
		{"https://h.example:8443/r", "protocol=https\nhost=h.example\n", false},
		{"http://h.example/r", "protocol=http\nhost=h.example\n", true},
		{"http://h.example/r", "protocol=https\nhost=h.example\n", false},
		{"https://[::1]:8443/r", "protocol=https\nhost=[::1]:8443\n", true},
		{"https://[::1]/r", "protocol=https\nhost=[::1]\n", true},
	} {
		s := serve(t, c, row.url, nil)
		output, err := credentialFill(t, s, row.question+"\n")
		given := err == nil && strings.Contains(output, "username=bot\npassword="+testToken+"\n")
		if given != row.given || given == s.Refused() || !given && strings.Contains(output, testToken) {
			t.Errorf("%s, %q: %q, %v, refused %v", row.url, row.question, output, err, s.Refused())
		}
	}
}

func TestAnonymousIsNotAsked(t *testing.T) {
	s := serve(t, Anonymous(), "https://h.example/r", nil)
	if output, err := credentialFill(t, s, "protocol=https\nhost=h.example\n\n"); err == nil || !s.Refused() {
		t.Errorf("%q, %v, refused %v", output, err, s.Refused())
	}
}

// git offers what served to be kept, after each connection by a proxy too: no program is
// started for that.
func TestNothingIsOfferedToTheHelper(t *testing.T) {
	dir := shortDir(t)
	helper, asked := filepath.Join(dir, "helper"), filepath.Join(dir, "asked")
	if err := os.WriteFile(helper, []byte("#!/bin/sh\necho $2 >>"+asked+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Anonymous().Serve(Serving{Dir: dir, Helper: []string{helper}, URL: parseURL(t, "https://h.example/r")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, operation := range []string{"approve", "fill", "reject"} {
		cmd := gitCommand(t, s, "credential", operation)
		cmd.Stdin = strings.NewReader("protocol=socks5h\nhost=127.0.0.1:1\nusername=git\npassword=x\n\n")
		if operation == "fill" {
			cmd.Stdin = strings.NewReader("protocol=https\nhost=h.example\n\n")
		}
		_ = cmd.Run() // Nobody answers the question.
	}
	if got, err := os.ReadFile(asked); err != nil || string(got) != "get\nerase\n" {
		t.Errorf("the helper was asked %q, %v", got, err)
	}
}

func TestHelperWithoutItsSession(t *testing.T) {
	s := serve(t, mustParse(t, map[string]string{"token": testToken}), "https://h.example/r", nil)
	socket := filepath.Join(s.dir, helperSocket)
	var output strings.Builder
	if code := Helper([]string{socket, "get"}, strings.NewReader("protocol=https\nhost=h.example\n"), &output); code != 0 || !strings.Contains(output.String(), testToken) {
		t.Errorf("while it is open: %d, %q", code, output.String())
	}
	for name, args := range map[string][]string{
		"nothing": nil, "no operation": {socket}, "a line break": {socket, "get", "a\nb"},
		"another session's words": {socket, "host-key", "HOSTNAME", "h", "NONE"}, "no socket": {socket + "x", "get"},
	} {
		output.Reset()
		if code := Helper(args, strings.NewReader(""), &output); code == 0 || output.String() != "" {
			t.Errorf("%s: %d, %q", name, code, output.String())
		}
	}
	s.Close()
	output.Reset()
	if code := Helper([]string{socket, "get"}, strings.NewReader(""), &output); code == 0 || output.String() != "" {
		t.Errorf("after its end: %d, %q", code, output.String())
	}
}

// forge answers git over HTTP with one ref for the right token, and keeps what it was
// shown.
type forge struct {
	*httptest.Server
	mu            sync.Mutex
	authorization []string
	redirect      string
	hold          func() // Called before each answer, while git waits for it.
}

func startForge(t *testing.T, address string, tls bool) *forge {
	t.Helper()
	f := &forge{}
	f.Server = httptest.NewUnstartedServer(f)
	listener, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Server.Listener.Close()
	f.Server.Listener = listener
	if tls {
		f.Server.StartTLS()
	} else {
		f.Server.Start()
	}
	t.Cleanup(f.Server.Close)
	return f
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.hold != nil {
		f.hold()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, password, _ := r.BasicAuth()
	f.authorization = append(f.authorization, r.Header.Get("Authorization"))
	switch {
	case f.redirect != "" && (password == testToken || strings.Contains(f.redirect, "early")):
		http.Redirect(w, r, strings.TrimSuffix(f.redirect, "early")+r.URL.RequestURI(), http.StatusFound)
	case password != testToken:
		w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
		w.WriteHeader(http.StatusUnauthorized)
	default:
		_, _ = fmt.Fprint(w, "4b825dc642cb6eb9a060e54bf8d69288fbee4904\trefs/heads/main\n")
	}
}

func (f *forge) shown() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.authorization, "")
}

func TestTokenOverHTTP(t *testing.T) {
	search := gittest.SearchSecrets(t, testToken)
	a, b := startForge(t, "127.0.0.1", false), startForge(t, "127.0.0.2", false)
	a.hold = func() {
		// On a busy machine git may be over before the search looks once.
		for deadline := time.Now().Add(10 * time.Second); !search.Saw("git") && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	list := func(token string) (string, *Session, error) {
		s := serve(t, mustParse(t, map[string]string{"token": token}), a.URL+"/r.git", nil)
		output, err := gitCommand(t, s, "ls-remote", a.URL+"/r.git").CombinedOutput()
		search.Text(t, "what git prints", string(output))
		search.Files(t, s.dir)
		return string(output), s, err
	}
	if output, s, err := list(testToken); err != nil || s.Refused() || !strings.Contains(output, "refs/heads/main") {
		t.Errorf("the right token: %v, refused %v, %s", err, s.Refused(), output)
	}
	output, s, err := list("wrong-token-of-this-test")
	if err == nil || !s.Refused() {
		t.Errorf("a wrong token: %v, refused %v, %s", err, s.Refused(), output)
	}
	if again, err := credentialFill(t, s, strings.Replace(strings.Replace(a.URL, "://", "\nhost=", 1), "http", "protocol=http", 1)+"\n\n"); err == nil {
		t.Errorf("a refused token is given once more: %s", again)
	}
	// C45: from one host to the other, with and without a login before.
	for _, early := range []string{"", "early"} {
		a.redirect = b.URL + early
		output, s, err := list(testToken)
		if err == nil || b.shown() != "" || !s.Refused() {
			t.Errorf("redirected %s: %v, the other host is shown %q, refused %v, %s", early, err, b.shown(), s.Refused(), output)
		}
	}
	if !search.Saw("git") {
		t.Error("the search saw no git")
	}
}

// C45: the Secret's CA is added to the system's.
func TestCA(t *testing.T) {
	server := startForge(t, "127.0.0.1", true)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for name, row := range map[string]struct {
		ca string
		ok bool
	}{"the server's": {ca, true}, "another": {certificate(t), false}, "none": {"", false}} {
		data := map[string]string{"token": testToken}
		if row.ca != "" {
			data["ca.crt"] = strings.TrimSuffix(row.ca, "\n")
		}
		roots := filepath.Join(t.TempDir(), "roots")
		system := certificate(t)
		if err := os.WriteFile(roots, []byte(system), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := mustParse(t, data).Serve(Serving{
			Dir: shortDir(t), Helper: helperCommand(t), URL: parseURL(t, server.URL+"/r"),
			Bundles: NewBundles(t.TempDir()), Roots: []string{roots + "-not", roots},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		output, err := gitCommand(t, s, "ls-remote", server.URL+"/r").CombinedOutput()
		if (err == nil) != row.ok || s.Refused() {
			t.Errorf("with the CA %q: %v, refused %v, %s", name, err, s.Refused(), output)
		}
		if content, err := os.ReadFile(caFile(s)); row.ca != "" && (err != nil || !strings.HasPrefix(string(content), system) || !strings.HasSuffix(string(content), row.ca)) {
			t.Errorf("with the CA %q, the bundle is %q, %v", name, content, err)
		}
	}
}

// caFile is the file with certificates that git is told of; empty: none.
func caFile(s *Session) string {
	for _, setting := range s.GitConfig() {
		if setting[0] == "http.sslCAInfo" {
			return setting[1]
		}
	}
	return ""
}
