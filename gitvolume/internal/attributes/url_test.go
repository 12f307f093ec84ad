package attributes

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// C45: the parts are those that git reads.
var accepted = []struct {
	text string
	want URL
	repo string
}{
	{"git@h:o/r.git", URL{Scheme: "ssh", User: "git", Host: "h", Port: 22, Path: "o/r.git", ScpStyle: true}, "h/o/r.git"},
	{"git@h:2222/r.git", URL{Scheme: "ssh", User: "git", Host: "h", Port: 22, Path: "2222/r.git", ScpStyle: true}, "h/2222/r.git"},
	{"ssh://git@h:2222/r.git", URL{Scheme: "ssh", User: "git", Host: "h", Port: 2222, Path: "/r.git"}, "h/r.git"},
	{"ssh://git@h/~u/r", URL{Scheme: "ssh", User: "git", Host: "h", Port: 22, Path: "~u/r"}, "h/~u/r"},
	{"h:r.git", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "r.git", ScpStyle: true}, "h/r.git"},
	{"h:/abs/r.git", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "/abs/r.git", ScpStyle: true}, "h/abs/r.git"},
	{"h:/~u/r", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "~u/r", ScpStyle: true}, "h/~u/r"},
	{"h:a~b", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "~b", ScpStyle: true}, "h/~b"},
	{"h:with space/r", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "with space/r", ScpStyle: true}, "h/with space/r"},
	{"ssh://a%40b@h/r", URL{Scheme: "ssh", User: "a@b", Host: "h", Port: 22, Path: "/r"}, "h/r"},
	{"ssh://h%2fx/r", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "/x/r"}, "h/x/r"},
	{"ssh://h/%zz%2", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "/%zz%2"}, "h/%zz%2"},
	{"ssh://h/%ff", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "/\xff"}, "h/�"},
	{"ssh://h/a#b?c", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "/a#b?c"}, "h/a#b?c"},
	{"ssh://h:/r", URL{Scheme: "ssh", Host: "h", Port: 22, Path: "/r"}, "h/r"},
	{"user@corp@h:r.git", URL{Scheme: "ssh", User: "user@corp", Host: "h", Port: 22, Path: "r.git", ScpStyle: true}, "h/r.git"},
	{"git@[::1]:r.git", URL{Scheme: "ssh", User: "git", Host: "::1", Port: 22, Path: "r.git", ScpStyle: true}, "[::1]/r.git"},
	{"[git@::1]:r", URL{Scheme: "ssh", User: "git", Host: "::1", Port: 22, Path: "r", ScpStyle: true}, "[::1]/r"},
	{"[git@h:2222]:r", URL{Scheme: "ssh", User: "git", Host: "h", Port: 2222, Path: "r", ScpStyle: true}, "h/r"},
	{"git@[h:2222]:r", URL{Scheme: "ssh", User: "git", Host: "h", Port: 2222, Path: "r", ScpStyle: true}, "h/r"},
	{"[::1]:2222:r", URL{Scheme: "ssh", Host: "::1", Port: 22, Path: "2222:r", ScpStyle: true}, "[::1]/2222:r"},
	{"ssh://git@[::1]:2222/r", URL{Scheme: "ssh", User: "git", Host: "::1", Port: 2222, Path: "/r"}, "[::1]/r"},
	{"ssh://[git@::1]:2222/r", URL{Scheme: "ssh", User: "git", Host: "::1", Port: 2222, Path: "/r"}, "[::1]/r"},
	{"git://h/r", URL{Scheme: "git", Host: "h", Port: 9418, Path: "/r"}, "h/r"},
	{"git://h:94/~u/r", URL{Scheme: "git", Host: "h", Port: 94, Path: "~u/r"}, "h/~u/r"},
	{"https://h:8443/r.git/", URL{Scheme: "https", Host: "h", Port: 8443, Path: "/r.git/"}, "h/r.git"},
	{"https://h/r", URL{Scheme: "https", Host: "h", Port: 443, Path: "/r"}, "h/r"},
	{"https://h/r.git", URL{Scheme: "https", Host: "h", Port: 443, Path: "/r.git"}, "h/r.git"},
	{"http://H.Example.:/a%20b", URL{Scheme: "http", Host: "H.Example.", Port: 80, Path: "/a b"}, "h.example/a b"},
	{"https://[::1]:8443/r", URL{Scheme: "https", Host: "::1", Port: 8443, Path: "/r"}, "[::1]/r"},
	{"https://dev.example/org/~u/_git/r", URL{Scheme: "https", Host: "dev.example", Port: 443, Path: "/org/~u/_git/r"}, "dev.example/org/~u/_git/r"},
	{"file:///etc", URL{Scheme: "file", Path: "/etc"}, "/etc"},
	{"/etc/passwd", URL{Scheme: "file", Path: "/etc/passwd"}, "/etc/passwd"},
	{"/etc:x", URL{Scheme: "file", Path: "/etc:x"}, "/etc:x"},
}

func TestParseURL(t *testing.T) {
	for _, row := range accepted {
		t.Run(row.text, func(t *testing.T) {
			got, err := ParseURL(row.text)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != row.text {
				t.Errorf("git is given %q", got.String())
			}
			if got.Repo() != row.repo {
				t.Errorf("it is named %q, want %q", got.Repo(), row.repo)
			}
			var again URL
			if err := again.UnmarshalText([]byte(row.text)); err != nil || again != got {
				t.Errorf("read back it is %+v, %v", again, err)
			}
			got.text = ""
			if got != row.want {
				t.Errorf("it is\n%+v, want\n%+v", got, row.want)
			}
		})
	}
}

// TestParseURLAsGit asks git itself for the parts of the addresses that git, and not
// curl, takes apart.
func TestParseURLAsGit(t *testing.T) {
	dir := t.TempDir()
	ask := gitAsker(t, dir)
	for _, row := range accepted {
		if row.want.Scheme == "https" || row.want.Scheme == "http" || row.text[0] == '/' {
			continue
		}
		t.Run(row.text, func(t *testing.T) { compareWithGit(t, ask, row.text) })
	}
}

func FuzzParseURLAsGit(f *testing.F) {
	for _, row := range accepted {
		f.Add(row.text)
	}
	for _, row := range refused {
		f.Add(row.text)
	}
	ask := gitAsker(f, f.TempDir())
	f.Fuzz(func(t *testing.T, text string) {
		if u, err := ParseURL(text); err != nil || u.IsHTTP() || u.IsLocal() {
			return
		}
		compareWithGit(t, ask, text)
	})
}

// gitAsker returns the function that prints what git makes of an address.
func gitAsker(t testing.TB, dir string) func(string) string {
	run := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + dir + "/none"}
		output, _ := cmd.CombinedOutput()
		return string(output)
	}
	if output := run("init", "-q", "."); output != "" {
		t.Fatal(output)
	}
	return func(address string) string { return run("fetch-pack", "--diag-url", address) }
}

func compareWithGit(t *testing.T, ask func(string) string, text string) {
	t.Helper()
	u, err := ParseURL(text)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(ask(text)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "Diag: "), "\n"), "=")
		want[key] = value
	}
	if want["protocol"] != u.Scheme || want["path"] != u.Path {
		t.Errorf("%q is read as %q %q, git reads %v", text, u.Scheme, u.Path, want)
	}
	if u.Scheme != "ssh" {
		return
	}
	login := u.Host
	if u.User != "" {
		login = u.User + "@" + u.Host
	}
	port := "NONE"
	if u.Port != 22 {
		port = fmt.Sprint(u.Port)
	}
	if gitPort := strings.TrimLeft(want["port"], "0"); want["userandhost"] != login || gitPort != port && gitPort != "22" {
		t.Errorf("%q is read as %q, port %s; git reads %v", text, login, port, want)
	}
}

var refused = []struct{ text, says string }{
	{"", "empty"},
	{"ssh://git@h:~u/r", "ssh://host/~user/path"},
	{"ext::sh -c id", "remote helper"},
	{"fd::17", "remote helper"},
	{"h::r", "remote helper"},
	{"::1:r", "remote helper"},
	{"git@-oProxyCommand=id:x", "option"},
	{"-oProxyCommand=id:x", "option"},
	{"ssh://-oProxyCommand=id/x", "option"},
	{"ssh://%2doProxyCommand=id/x", "option"},
	{"ssh://git@-oProxyCommand=id/x", "option"},
	{"ssh://-l@h/x", "option"},
	{"[-oProxyCommand=id]:x", "option"},
	{"--upload-pack=id", "option"},
	{"h:--help", "write host:./-path"},
	{"ssh://a;b@h/r", "git@host:path"},
	{"https://h/r.git\n", "white space"},
	{" https://h/r.git", "white space"},
	{"https://h/r\n.git", "control byte 0x0a at byte 12; write it on one line"},
	{"ssh://h/%0ar", "control byte 0x0a"},
	{"git://h/%00r", "control byte 0x00"},
	{"https://h/%0d%0aX: y", "space"},
	{"https://h/%0d%0aX", "control byte 0x0d"},
	{"file:///a%00", "control byte"},
	{"https://h/a b", "%20"},
	{"https://h/a\\b", "backslash"},
	{"https://h\\@evil/r", "backslash"},
	{"https://user@h/r", "Secret"},
	{"https://user:secret-x@h/r", "Secret"},
	{"https://h/r?private_token=secret-x", "token belongs in a Secret"},
	{"https://h/r#x", "fragment"},
	{"https://h/r#access_token=secret-x", "token belongs in a Secret"},
	{"https://user:secret-x?y@h/r", "token belongs in a Secret"},
	{"https://user:secret-x#y@h/r", "token belongs in a Secret"},
	{"https://h/r?mail=a@b&token=secret-x", "token belongs in a Secret"},
	{"user:secret-x://y@h/r", "no scheme"},
	{"ssh://user:secret-x@h/r", "Secret"},
	{"ssh://user%3asecret-x@h/r", "Secret"},
	{"user:secret-x@h:r", "Secret"},
	{"user:secret-x@h/r", "Secret"},
	{"user:pa/secret-x@h:r", "Secret"},
	{"[u:secret-x@::1]:r", "Secret"},
	{"git://u@h/r", "only ssh"},
	{"ftp://h/r", "scheme"},
	{"git+ssh://h/r", "scheme"},
	{"HTTPS://h/r", "upper-case"},
	{"SSH://h/r", "upper-case"},
	{"ssh:///r", "no host"},
	{"ssh://h", "no path"},
	{"h:", "no path"},
	{"https:///r", "no host"},
	{":r", "no host"},
	{"@h:r", "before the '@'"},
	{"ssh://h:0/r", "port"},
	{"ssh://h:65536/r", "port"},
	{"ssh://h:+22/r", "port"},
	{"ssh://h: 22/r", "port"},
	{"https://h:x/r", "port"},
	{"ssh://u@h:22:33/r", "port"},
	{"ssh://u;id@h/r", "user"},
	{"ssh://$(id)@h/r", "user"},
	{"ssh://h;id/r", "host"},
	{"h b:r", "host"},
	{"ssh://[fe80::1%25eth0]/r", "zone"},
	{"https://[::1/r", "']'"},
	{"https://[::1]x/r", "']'"},
	{"https://[h]/r", "brackets"},
	{"https://a..b/r", "two dots"},
	{"https://ex\u00e4mple.org/r", "xn--"},
	{"https://127.1/r", "four decimal numbers"},
	{"https://2130706433/r", "four decimal numbers"},
	{"https://0x7f000001/r", "four decimal numbers"},
	{"https://0177.0.0.1/r", "four decimal numbers"},
	{"https://127.0.0.1./r", "four decimal numbers"},
	{"ssh://127.1/r", "four decimal numbers"},
	{"h:0://", "no scheme"},
	{"/a://b", "no scheme"},
	{"r.git", "no scheme"},
	{"./h:r", "no scheme"},
	{"github.com/o/r", "https://host/path"},
	{"file://h/etc", "three slashes"},
	{"file://etc", "three slashes"},
	{"https://" + strings.Repeat("a", 64) + "/r", "63 bytes"},
}

func TestParseURLRefuses(t *testing.T) {
	for _, row := range refused {
		t.Run(row.text, func(t *testing.T) {
			u, err := ParseURL(row.text)
			if err == nil {
				t.Fatalf("it is accepted as %+v", u)
			}
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), row.says) {
				t.Errorf("the error does not say %q: %v", row.says, err)
			}
			if strings.Contains(err.Error(), "secret-x") {
				t.Errorf("the error repeats a password: %v", err)
			}
			if !u.IsZero() {
				t.Errorf("with the error comes %+v", u)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	for _, one := range [][]string{
		{
			"https://github.com/acme/config", "https://github.com/acme/config.git", "https://GitHub.com./acme/config.git/",
			"http://github.com:8080/acme/config", "git@github.com:acme/config.git", "github.com:/acme/config",
			"ssh://git@github.com:2222/acme/config.git", "git://github.com/acme/config.git", "https://github.com/acme/%63onfig",
		},
		{"https://[::1]/r", "git@[0:0::1]:r.git"},
		{"h:.git", "ssh://h/.git"},
	} {
		identity := ""
		for _, text := range one {
			u, err := ParseURL(text)
			if err != nil {
				t.Fatal(err)
			}
			if identity == "" {
				identity = u.Identity()
			}
			if u.Identity() != identity {
				t.Errorf("the identity of %s is %q, that of %s %q", text, u.Identity(), one[0], identity)
			}
		}
	}
	a, _ := ParseURL("https://h/a/b")
	b, _ := ParseURL("https://h/a/b2")
	if a.Identity() == b.Identity() || a.Identity() != "h/a/b" {
		t.Errorf("identities are %q and %q", a.Identity(), b.Identity())
	}
}
