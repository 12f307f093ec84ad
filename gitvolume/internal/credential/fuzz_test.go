package credential

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// A line of known_hosts is a server's if ssh-keygen finds it for the server: one that was
// passed over would leave whatever key is seen first to be trusted.
func FuzzKnownHosts(f *testing.F) {
	key := strings.TrimSpace(gittest.NewKey(f, "ed25519").Authorized)
	for _, names := range []string{
		"h.example", "h.example,10.0.0.1", "*.example", "!h.example,*", "?.example", "[h.example]:22", "[h.example]:2222", "H.Example", "h.e[x]ample",
		`h\.example`, "|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg=", "|1||", "*", ",", "!*", "#h.example", "**.ex*", "h.exampl\x00e",
	} {
		f.Add(names, "h.example")
		f.Add(names, "[h.example]:2222")
	}
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		f.Fatal(err)
	}
	file := filepath.Join(f.TempDir(), "known_hosts")
	f.Fuzz(func(t *testing.T, names, server string) {
		isPlain := server != "" && strings.Trim(server, "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") == "" && len(server) < 200
		if !isPlain || names == "" || len(strings.Fields(names)) != 1 || strings.TrimSpace(names) != names || strings.ContainsAny(names[:1], "#@") || len(names) > 900 {
			return
		}
		if strings.ContainsFunc(names, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
			isNamed(server, names) // No panic: OpenSSH ends at a NUL, and lower-cases no other letters.
			return
		}
		if err := os.WriteFile(file, []byte(names+" "+key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(keygen, "-F", server, "-f", file).Output()
		want := err == nil && strings.Contains(string(out), "found")
		if got := isNamed(server, names); got != want {
			t.Errorf("%q names %q: %t, ssh-keygen says %t", names, server, got, want)
		}
	})
}

// Whatever git is led to ask, only the volume's own server is given the token.
func FuzzQuestion(f *testing.F) {
	for _, question := range []string{
		"protocol=https\nhost=h.example\n", "protocol=https\nhost=h.example:443\nusername=git\n", "protocol=http\nhost=h.example\n",
		"protocol=https\nhost=evil\nhost=h.example\n", "protocol=https\nhost=h.example\nusername=other\n", "protocol=https\nhost=H.EXAMPLE.\npath=x\n",
		"host=h.example\x00\nprotocol=https\n", "protocol=https\r\nhost=h.example\r\n", "protocol=https\nhost=[h.example]\n", "protocol=https\nhost=h.example:0443\n",
	} {
		f.Add(question)
	}
	c := mustParse(f, map[string]string{"token": "TOKEN", "username": "git"})
	f.Fuzz(func(t *testing.T, question string) {
		s := &Session{credential: c, url: parseURL(t, "https://h.example/r")}
		if !s.isOurs(question) {
			return
		}
		fields := map[string]string{}
		for line := range strings.SplitSeq(question, "\n") {
			key, value, _ := strings.Cut(line, "=")
			if was, again := fields[key]; again && key != "" && was != value && !strings.HasSuffix(key, "[]") {
				t.Errorf("%q says %s twice", question, key)
			}
			fields[key] = value
		}
		host := strings.ToLower(strings.Trim(strings.TrimSuffix(fields["host"], ":443"), "[]."))
		if fields["protocol"] != "https" || host != "h.example" || fields["username"] != "git" && fields["username"] != "" {
			t.Errorf("%q is answered", question)
		}
	})
}
