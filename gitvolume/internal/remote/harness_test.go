package remote

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/object"
)

// newCommand is a Command of the test's own, whose stalls and graces are short.
func newCommand(t testing.TB, change ...func(*Settings)) *Command {
	t.Helper()
	executable, err := os.Executable()
	check(t, err)
	dir, err := os.MkdirTemp("", "r") //nolint:usetesting // the path of t.TempDir is too long for a socket
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
	url, err := attributes.ParseURL(text)
	check(t, err)
	return Remote{URL: url, Session: quickly{}}
}

// quick has helpers that are built with the race detector end at once, and not a second
// after their work.
const quick = "GORACE=atexit_sleep_ms=0"

// quickly is a Session without a credential.
type quickly struct{}

func (quickly) Environment() []string  { return []string{quick} }
func (quickly) GitConfig() [][2]string { return nil }
func (quickly) SSHOptions() []string   { return nil }
func (quickly) Refused() bool          { return false }

// lend has the remote asked with the credential of a Secret.
func lend(t testing.TB, text string, secret map[string]string) Remote {
	t.Helper()
	remote := at(t, text)
	c, err := credential.Parse(secret)
	check(t, err)
	remote.Session = serve(t, c, remote.URL)
	return remote
}

// quickSession is a Session with a credential.
type quickSession struct{ *credential.Session }

func (q quickSession) Environment() []string {
	return append(slices.Clone(q.Session.Environment()), quick)
}

func serve(t testing.TB, c *credential.Credential, url attributes.URL) Session {
	t.Helper()
	executable, err := os.Executable()
	check(t, err)
	dir, err := os.MkdirTemp("", "s") //nolint:usetesting // the path of t.TempDir is too long for a socket
	check(t, err)
	hosts, err := credential.OpenKnownHosts(filepath.Join(dir, "ssh"))
	check(t, err)
	session, err := c.Serve(credential.Serving{
		Dir: dir, Helper: []string{executable, helperWord}, URL: url, Hosts: hosts, Bundles: credential.NewBundles(dir),
	})
	check(t, err)
	t.Cleanup(func() {
		session.Close()
		check(t, os.RemoveAll(dir))
	})
	return quickSession{session}
}

// local serves the repository as a file.
func local(t testing.TB, b *gittest.Bare) Remote { return at(t, "file://"+b.Dir) }

// overSSH starts an sshd for the repository.
func overSSH(t testing.TB, b *gittest.Bare) Remote {
	t.Helper()
	key := gittest.NewKey(t, "ed25519")
	server := gittest.StartSSHD(t, gittest.SSHDOptions{AuthorizedKeys: []string{key.Authorized}})
	return lend(t, server.URL(b.Dir), map[string]string{"ssh-privatekey": key.PEM, "known_hosts": server.KnownHosts()})
}

// overHTTP starts an HTTP server for the repository, which lets anybody in.
func overHTTP(t testing.TB, b *gittest.Bare) Remote {
	t.Helper()
	return httpRemote(t, b, gittest.HTTPOptions{User: "git"})
}

// token is what servers of tests ask for.
const token = "a-token-that-must-not-be-seen"

// overHTTPS starts an HTTPS server that wants a token, with an authority that only the
// Secret knows.
func overHTTPS(t testing.TB, b *gittest.Bare) Remote {
	t.Helper()
	return httpRemote(t, b, gittest.HTTPOptions{User: "git", Password: token, CA: gittest.NewCA(t)})
}

// httpRemote starts a server and gives the credential that it wants.
func httpRemote(t testing.TB, b *gittest.Bare, options gittest.HTTPOptions) Remote {
	t.Helper()
	server := gittest.StartHTTP(t, filepath.Dir(b.Dir), options)
	url := server.URL("/" + filepath.Base(b.Dir))
	if options.Password == "" {
		return at(t, url)
	}
	secret := map[string]string{"token": options.Password, "username": options.User}
	if options.CA != nil {
		secret["ca.crt"] = options.CA.PEM
	}
	return lend(t, url, secret)
}

// overGit starts a daemon of git's own protocol, which takes no push.
func overGit(t testing.TB, b *gittest.Bare) Remote {
	t.Helper()
	return at(t, gittest.StartDaemon(t, filepath.Dir(b.Dir)).URL("/"+filepath.Base(b.Dir)))
}

// kinds are the remotes that the contract is tested on.
func kinds() map[string]func(testing.TB, *gittest.Bare) Remote {
	return map[string]func(testing.TB, *gittest.Bare) Remote{
		"local": local, "ssh": overSSH, "http": overHTTP, "https": overHTTPS,
	}
}

// quickKinds are for tables about what becomes of refs, which is the same however they
// are served: the other kinds cost many starts of programs.
func quickKinds() map[string]func(testing.TB, *gittest.Bare) Remote {
	return map[string]func(testing.TB, *gittest.Bare) Remote{"local": local, "http": overHTTP}
}

// kindsThatRead are kinds and those that can only be read.
func kindsThatRead() map[string]func(testing.TB, *gittest.Bare) Remote {
	all := kinds()
	all["git"] = overGit
	return all
}

// onEachKindThatReads is onEachKind for what pushes nothing.
func onEachKindThatReads(t *testing.T, test func(*testing.T, *Command, *gittest.Bare, Remote)) {
	t.Helper()
	on(t, kindsThatRead(), test)
}

// onEachKind runs the test on a repository of its own behind each kind of remote.
func onEachKind(t *testing.T, test func(*testing.T, *Command, *gittest.Bare, Remote)) {
	t.Helper()
	on(t, kinds(), test)
}

func on(t *testing.T, kinds map[string]func(testing.TB, *gittest.Bare) Remote, test func(*testing.T, *Command, *gittest.Bare, Remote)) {
	t.Helper()
	for name, start := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := gittest.NewBare(t)
			test(t, newCommand(t), b, start(t, b))
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
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
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
