package remote

import (
	"strings"
	"sync"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
)

// TestPhaseIsRedacted has a server repeat the token as what it is busy with.
func TestPhaseIsRedacted(t *testing.T) {
	const secret = "SecretTokenOfLetters"
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	remote := httpRemote(t, b, gittest.HTTPOptions{User: "git", Password: secret, CA: gittest.NewCA(t)})
	p := newPushing(t, newCommand(t), b, remote)
	b.Hook("pre-receive", `echo "`+secret+`: 50% (1/2)" >&2; echo "Of `+secret+`: 50% (1/2)" >&2; exit 1`)
	var mu sync.Mutex
	var shown []string
	_, err := p.c.Push(t.Context(), Push{Dir: p.store.Dir, Remote: remote, Branch: p.update("refs/heads/main", "1"), Progress: func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, p.String())
	}})
	if !isDeclined(err) {
		t.Fatalf("%v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if all := err.Error() + strings.Join(shown, " "); strings.Contains(all, secret) || !strings.Contains(all, "***") {
		t.Errorf("%s", all)
	}
}

// TestNamesAreRedacted has a server repeat the token as the name of a branch.
func TestNamesAreRedacted(t *testing.T) {
	b := gittest.NewBare(t)
	remote := overHTTPS(t, b)
	b.Grow("x-"+token, "f", "1")
	b.SetRef("refs/tags/y-"+token, b.Tip("refs/heads/x-"+token))
	refs, err := newCommand(t).List(t.Context(), remote, "main")
	check(t, err)
	_, err = refs.Resolve("main")
	wantError(t, err, ErrNoRef)
	if strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "x-***") || !strings.Contains(err.Error(), "y-***") {
		t.Errorf("%v", err)
	}
}

// TestProxySecret: curl repeats a proxy's URL that it does not understand.
func TestProxySecret(t *testing.T) {
	for _, proxy := range []string{
		"http://user:sec ret@127.0.0.1:1", "http://user:sec%zzret@127.0.0.1:1", "socks9://user:secret@127.0.0.1:1",
		"http://user:secret@127.0.0.1:99999", "http://user:secret@nosuch.invalid:1", "http://us:se#cret@127.0.0.1:1",
		"http://us:sec/ret@127.0.0.1:1", "user:sec@ret@127.0.0.1:1",
	} {
		t.Run(proxy, func(t *testing.T) {
			t.Parallel()
			c := newCommand(t, func(s *Settings) { s.Environment = append(s.Environment, "https_proxy="+proxy) })
			_, err := c.List(t.Context(), at(t, "https://h.invalid/r"), "main")
			if err == nil {
				t.Fatal("it works")
			}
			for _, part := range []string{"sec", "cret", "zzret", ":se"} {
				if strings.Contains(err.Error(), part) {
					t.Errorf("it has %q: %v", part, err)
				}
			}
		})
	}
}

func TestUserinfo(t *testing.T) {
	for _, row := range []struct{ proxy, said, want string }{
		{"http://h:1", "to http://h:1", "to http://h:1"},
		{"http://user:pass@h:1", "to http://user:pass@h:1 as user with pass", "to http://***@h:1 as user with ***"},
		{"http://user:p%40ss@h:1", "with p@ss or p%40ss", "with *** or ***"},
		{"http://onetoken@h", "to http://onetoken@h", "to http://***@h"},
	} {
		if got := proxiesOf([]string{"ALL_PROXY=" + row.proxy}).redact(row.said); got != row.want {
			t.Errorf("%s: %q, want %q", row.proxy, got, row.want)
		}
	}
}
