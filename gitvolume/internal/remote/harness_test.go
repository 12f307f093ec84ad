package remote

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/object"
)

// newCommand is a Command of the test's own, whose stalls and graces are short.
func newCommand(t testing.TB, change ...func(*Settings)) *Command {
	t.Helper()
	executable, err := os.Executable()
	check(t, err)
	// The test's own directory has a path too long for a socket below it.
	dir, err := os.MkdirTemp("", "r")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(dir)) })
	settings := Settings{
		Executable:  executable,
		Directory:   filepath.Join(dir, "g"),
		Environment: []string{"PATH=" + os.Getenv("PATH")},
		Grace:       2 * time.Second,
	}
	for _, c := range change {
		c(&settings)
	}
	c, err := New(settings)
	check(t, err)
	t.Cleanup(func() {
		runs, err := os.ReadDir(c.runs)
		check(t, err)
		if len(runs) > 0 {
			t.Errorf("%d directories of runs are left", len(runs))
		}
	})
	return c
}

// at is the URL as a remote without a credential.
func at(t testing.TB, text string) Remote {
	t.Helper()
	u, err := url.Parse(text)
	check(t, err)
	return Remote{URL: URL{Text: text, Scheme: u.Scheme, Host: u.Hostname()}}
}

// keptSession is a session whose parts are plain, for servers that let in who has a key
// file, and for none at all.
type keptSession struct {
	environment []string
	config      [][2]string
	ssh         []string
	refused     bool
	secret      string
}

func (k *keptSession) Environment() []string  { return k.environment }
func (k *keptSession) GitConfig() [][2]string { return k.config }
func (k *keptSession) SSHOptions() []string   { return k.ssh }
func (k *keptSession) Refused() bool          { return k.refused }
func (k *keptSession) Redact(text string) string {
	if k.secret == "" {
		return text
	}
	return strings.ReplaceAll(text, k.secret, "***")
}

// local serves the repository as a file.
func local(t testing.TB, b *gittest.Bare) Remote { return at(t, "file://"+b.Dir) }

// overSSH starts an sshd for the repository.
func overSSH(t testing.TB, b *gittest.Bare) Remote {
	t.Helper()
	key := gittest.NewKey(t, "ed25519")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	remote := at(t, server.URL(b.Dir))
	remote.Session = sshSession(t, server, key, server.KnownHosts())
	return remote
}

func sshSession(t testing.TB, server *gittest.SSHD, key gittest.Key, hosts string) *keptSession {
	t.Helper()
	dir := t.TempDir()
	keyFile, hostFile := filepath.Join(dir, "key"), filepath.Join(dir, "hosts")
	check(t, os.WriteFile(keyFile, []byte(key.PEM), 0o600))
	check(t, os.WriteFile(hostFile, []byte(hosts), 0o600))
	return &keptSession{ssh: []string{
		"-F", os.DevNull, "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-i", keyFile, "-o", "IdentityAgent=none",
		"-o", "UserKnownHostsFile=" + hostFile, "-o", "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes",
	}}
}

// overHTTP starts an HTTP server for the repository.
func overHTTP(t testing.TB, b *gittest.Bare) Remote {
	t.Helper()
	return httpRemote(t, b, gittest.HTTPOptions{User: "git"})
}

// overHTTPS starts an HTTPS server, with an authority that only the session knows and a
// password that the credential helper of a test gives.
func overHTTPS(t testing.TB, b *gittest.Bare) Remote {
	t.Helper()
	return httpRemote(t, b, gittest.HTTPOptions{User: "git", Password: "a secret of 20 bytes", CA: gittest.NewCA(t)})
}

func httpRemote(t testing.TB, b *gittest.Bare, options gittest.HTTPOptions) Remote {
	t.Helper()
	server := gittest.StartHTTP(t, filepath.Dir(b.Dir), options)
	remote := at(t, server.URL("/"+filepath.Base(b.Dir)))
	remote.Session = httpSession(options)
	return remote
}

func httpSession(options gittest.HTTPOptions) *keptSession {
	session := &keptSession{secret: options.Password}
	if options.CA != nil {
		session.config = append(session.config, [2]string{"http.sslCAInfo", options.CA.File})
	}
	if options.Password != "" {
		session.config = append(session.config, [2]string{
			"credential.helper",
			"!f() { test \"$1\" = get && echo username=" + options.User + " && echo 'password=" + options.Password + "'; }; f",
		})
	}
	return session
}

// kinds are the remotes that the contract is tested on.
func kinds() map[string]func(testing.TB, *gittest.Bare) Remote {
	return map[string]func(testing.TB, *gittest.Bare) Remote{
		"local": local, "ssh": overSSH, "http": overHTTP, "https": overHTTPS,
	}
}

// onEachKind runs the test on a repository of its own behind each kind of remote.
func onEachKind(t *testing.T, test func(*testing.T, *Command, *gittest.Bare, Remote)) {
	t.Helper()
	for name, serve := range kinds() {
		t.Run(name, func(t *testing.T) {
			b := gittest.NewBare(t)
			test(t, newCommand(t), b, serve(t, b))
		})
	}
}

func id(t testing.TB, text string) object.ID {
	t.Helper()
	if text == "" {
		return object.ID{}
	}
	parsed, err := object.Parse(text)
	check(t, err)
	return parsed
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError fails unless the error is the kind.
func wantError(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("the error is %v, want one that is %q", err, kind)
	}
}

func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not happen in 30 s: %s", what)
		}
	}
}

// processes are those of the machine whose environment has the entry.
func processes(entry string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		content, _ := os.ReadFile(file)
		if strings.Contains("\x00"+string(content), "\x00"+entry) && filepath.Base(filepath.Dir(file)) != strconv.Itoa(os.Getpid()) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// ofCommand are the processes of runs of this Command.
func ofCommand(c *Command) []string { return processes("GIT_CONFIG_GLOBAL=" + c.config) }
