package attributes

import (
	"errors"
	"testing"
)

func TestPattern(t *testing.T) {
	for _, row := range []struct {
		pattern string
		match   []string
		not     []string
	}{
		{
			"git.example.com",
			[]string{
				"https://git.example.com/r", "https://GIT.example.COM./r", "git@git.example.com:r", "ssh://x@git.example.com:2222/r",
				"https://git.example.com:8443/a/../r", "git://git.example.com/r",
			},
			[]string{
				"https://evilgit.example.com/r", "https://git.example.com.evil.org/r", "ssh://git.example.com@evil.org/r",
				"git.example.com@evil.org:r", "https://evil.org/git.example.com", "https://a.git.example.com/r",
				"ssh://evil.org/git.example.com", "evil.org:git.example.com", "file:///git.example.com", "/git.example.com",
			},
		},
		{
			"*.example.com",
			[]string{"https://a.example.com/r", "https://a.b.example.com/r", "h@A.Example.com.:r"},
			[]string{"https://example.com/r", "https://aexample.com/r", "https://a.example.com.evil.org/r"},
		},
		{"*", []string{"https://h/r", "h:r", "https://[::1]/r"}, []string{"file:///r", "/r"}},
		{"https://h", []string{"https://h/r", "https://h:8443/r"}, []string{"http://h/r", "h:r"}},
		{"h:443", []string{"https://h/r", "https://h:443/r", "ssh://h:443/r"}, []string{"https://h:8443/r", "h:443/r", "http://h/r"}},
		{"[::1]", []string{"https://[::1]/r", "[0::1]:r"}, []string{"https://[::2]/r"}},
		{"[::1]:22", []string{"u@[::1]:r"}, []string{"https://[::1]/r"}},
		{"127.0.0.1", []string{"https://127.0.0.1:8443/r"}, []string{"https://127.0.0.2/r"}},
		{
			"h/acme/config",
			[]string{"https://h/acme/config", "https://h/acme/config.git/", "u@h:acme/config.git", "ssh://h/acme/config", "https://h/acme/c%6fnfig"},
			[]string{"https://h/acme/config/x", "https://h/acme", "https://h/Acme/config", "https://h/acme/config2", "https://h/x/acme/config"},
		},
		{
			"h/acme/*",
			[]string{"https://h/acme/r", "https://h/acme/group/r", "h:acme/r"},
			[]string{
				"https://h/acme", "https://h/acme/", "https://h/acme2/r", "https://h/acme/../evil/r", "https://h/acme/%2e%2e/evil/r",
				"https://h/acme%2f..%2fevil/r", "h:acme/../evil/r", "https://h/acme/./r", "https://h/acme//r", `h:acme\..\evil/r`,
				"https://evil/acme/r", "ssh://h/~acme/r",
			},
		},
		{"h/*/config", []string{"https://h/a/config"}, []string{"https://h/a/b/config", "https://h/config"}},
		{"h/team-*/*", []string{"https://h/team-a/r"}, []string{"https://h/teams/r", "https://h/a/team-b"}},
		{"h/~u/*", []string{"ssh://h/~u/r"}, []string{"ssh://h/~v/r"}},
	} {
		p, err := ParsePattern(row.pattern)
		if err != nil {
			t.Errorf("%s: %v", row.pattern, err)
			continue
		}
		if again, err := ParsePattern(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("%s is written %q, which is read as %q, %v", row.pattern, p, again, err)
		}
		for want, texts := range map[bool][]string{true: row.match, false: row.not} {
			for _, text := range texts {
				u, err := ParseURL(text)
				if err != nil {
					t.Fatal(err)
				}
				if p.Match(u) != want {
					t.Errorf("%s matches %s: %v", row.pattern, text, !want)
				}
			}
		}
	}
}

func TestParsePatternRefuses(t *testing.T) {
	for _, bad := range []string{
		"", "/r", "https://", "https:///r", "git@h", "user:x@h", "*example.com", "git*.example.com", "*.*", "*.", "h:*", "h:0", "h:65536",
		"::1", "h/", "h/acme/", "h/../r", "h//r", "h/a?c", "h/[a]\\", "h/[ab]", "h/[^a]*/r", "h/a]", "h/%2e", "ftp://h", "file:///srv", "HTTPS://h", "h\n", "-h", "127.1", "h h",
		"{a,b}.example.com", "[h]:22x", "*.0.0.1", "*.1",
	} {
		if p, err := ParsePattern(bad); err == nil || !errors.Is(err, ErrInvalid) {
			t.Errorf("%q is accepted as %+v, %v", bad, p, err)
		}
	}
}
