package readonly_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
)

// private is a repository that wants a token, behind a server that can go away.
type private struct {
	*gittest.Bare
	url    string
	away   atomic.Bool
	wanted atomic.Value // The token.
}

func newPrivate(t testing.TB) *private {
	t.Helper()
	p := &private{Bare: gittest.NewBare(t)}
	p.wanted.Store("right")
	server := gittest.StartHTTP(t, filepath.Dir(p.Dir), gittest.HTTPOptions{Around: func(git http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, given, _ := r.BasicAuth()
			switch {
			case p.away.Load():
				http.Error(w, "away", http.StatusServiceUnavailable)
			case given != p.wanted.Load():
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
			default:
				git.ServeHTTP(w, r)
			}
		})
	}})
	p.url = server.URL("/r.git")
	return p
}

// TestNobodyElseSeesAPrivateRepository tries to be shown what another's credential brought.
func TestNobodyElseSeesAPrivateRepository(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	p.Grow("main", "f", "secret")
	n := newNode(t).start()
	owners := n.volume("owner", p.url, nil)
	owners.Credential = token(t, "right")
	owner := n.attach(owners)
	shows(t, owner, "f", "secret")
	tip := p.Tip("refs/heads/main")
	wrong := map[string]*credential.Credential{"another token": token(t, "wrong"), "none": credential.Anonymous()}
	for _, away := range []bool{false, true} {
		p.away.Store(away)
		want := remote.ErrAuthentication
		if away {
			want = remote.ErrUnreachable
		}
		tries := func(v readonly.Volume, who string) {
			v.Credential = wrong[who]
			if a, err := n.followers.Attach(t.Context(), v); !errors.Is(err, want) {
				t.Errorf("away %t, %+v, %s: %v, %v, want %v", away, v.Attributes, who, a, err, want)
			}
		}
		for who := range wrong {
			tries(n.volume("owner", p.url, nil), who) // One that is attached is not shown to whoever names it.
			tries(n.volume("other", p.url, nil), who)
			tries(n.volume("other", p.url, map[string]string{"offline": "allowStale"}), who)
		}
		for _, ref := range []string{"refs/heads/main", tip} {
			tries(n.volume("other", p.url, map[string]string{"offline": "allowStale", "ref": ref}), "another token")
		}
	}
	p.away.Store(false)
	p.Grow("main", "f", "newer")
	owner.Demand()
	shows(t, owner, "f", "newer")
	n.must(n.followers.Detach(t.Context(), "owner"))
	n.leavesNothing()
}

// TestStaleNeedsAnEarlierSuccess starts volumes while the forge is down.
func TestStaleNeedsAnEarlierSuccess(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	p.Grow("main", "f", "1")
	n := newNode(t).start()
	v := n.volume("before", p.url, map[string]string{"offline": "allowStale"})
	v.Credential = token(t, "right")
	n.attach(v)
	n.stop()
	n.start() // Of a node that was rebooted: nothing is mounted, so nothing is resumed.
	p.away.Store(true)
	p.Grow("main", "f", "2")

	refused := n.volume("before", p.url, nil)
	refused.Credential = v.Credential
	if _, err := n.followers.Attach(t.Context(), refused); !errors.Is(err, remote.ErrUnreachable) {
		t.Errorf("refuse: %v", err)
	}
	for name, change := range map[string]map[string]string{
		"another ref": {"ref": "other"}, "another depth": {"depth": "1"}, "refuse": {"offline": "refuse"},
	} {
		given := map[string]string{"offline": "allowStale"}
		for k, value := range change {
			given[k] = value
		}
		w := n.volume("new", p.url, given)
		w.Credential = v.Credential
		if _, err := n.followers.Attach(t.Context(), w); !errors.Is(err, remote.ErrUnreachable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	v.Report = n.report("before")
	a := n.attach(v)
	second := n.volume("new", p.url, map[string]string{"offline": "allowStale", "pull": "never"})
	second.Credential = v.Credential
	b := n.attach(second)
	if read(a, "f") != "1" || read(b, "f") != "1" || n.faults("before") != "Stale " || n.faults("new") != "Stale " {
		t.Errorf("%q, %q, %s, %s", read(a, "f"), read(b, "f"), n.faults("before"), n.faults("new"))
	}
	if said := n.posts.count("GitVolumeStale"); said == 0 {
		t.Error("no Event")
	}
	p.away.Store(false)
	a.Demand()
	shows(t, a, "f", "2")
	until(t, "nothing is wrong", func() bool { return n.faults("before") == "" && n.faults("new") == "" })
	if read(b, "f") != "1" {
		t.Errorf("never: %q", read(b, "f"))
	}
}

// TestRefusalIsNeverUnreachable takes the right away and keeps the credential.
func TestRefusalIsNeverUnreachable(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	p.Grow("main", "f", "1")
	n := newNode(t).start()
	v := n.volume("v", p.url, map[string]string{"offline": "allowStale"})
	v.Credential = token(t, "right")
	n.attach(v)
	p.wanted.Store("other")
	w := n.volume("w", p.url, map[string]string{"offline": "allowStale"})
	w.Credential = v.Credential
	if _, err := n.followers.Attach(t.Context(), w); !errors.Is(err, remote.ErrAuthentication) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(n.dir, "volumes", "w")); err == nil {
		t.Error("a record stays")
	}
}

// TestRotatedCredentialsOfASharedTree has two volumes of one credential get different ones.
func TestRotatedCredentialsOfASharedTree(t *testing.T) {
	t.Parallel()
	p := newPrivate(t)
	p.Grow("main", "f", "1")
	n := newNode(t).start()
	attach := func(handle, text string) func() string {
		v := n.volume(handle, p.url, nil)
		v.Credential = token(t, text)
		a := n.attach(v)
		return func() string { return read(a, "f") }
	}
	v := n.volume("v", p.url, nil)
	v.Credential = token(t, "right")
	a := n.attach(v)
	w := n.volume("w", p.url, nil)
	w.Credential = token(t, "right")
	b := n.attach(w)
	if a.Dir() != b.Dir() {
		t.Fatal("they do not share")
	}
	p.wanted.Store("new")
	p.Grow("main", "f", "2")
	a.TakeCredential(token(t, "new"))
	until(t, "the new one is let in", func() bool { return n.looks.Load() > 0 && a.Record().Reading.Scope != b.Record().Reading.Scope })
	b.Demand()
	until(t, "the old one is refused", func() bool { return n.faults("w") == "FetchFailed " })
	if read(a, "f") != "1" {
		t.Error("the volume with the old credential sees what it did not bring")
	}
	third := attach("x", "new")
	if third() != "2" {
		t.Errorf("a third shows %q", third())
	}
	b.TakeCredential(token(t, "new"))
	shows(t, b, "f", "2")
	until(t, "nothing is wrong", func() bool { return n.faults("v")+n.faults("w") == "" })
}

// TestRestart resumes a private, a public and a stale volume.
func TestRestart(t *testing.T) {
	t.Parallel()
	p, public := newPrivate(t), gittest.NewBare(t)
	p.Grow("main", "f", "1")
	public.Grow("main", "f", "1")
	n := newNode(t).start()
	v := n.volume("private", p.url, map[string]string{"pull": "on-demand"})
	v.Credential = token(t, "right")
	before := n.attach(v).Dir()
	n.attach(n.volume("public", urlOf(public), nil))
	n.stop()
	p.Grow("main", "f", "2")
	public.Grow("main", "f", "2")
	n.start()
	looks := n.looks.Load()
	resumed := n.resume()
	a := resumed["private"]
	shows(t, resumed["public"], "f", "2")
	if n.faults("private") != "CredentialMissing " || a.Dir() != before || read(a, "f") != "1" {
		t.Errorf("%s, %q", n.faults("private"), read(a, "f"))
	}
	if asked := n.looks.Load() - looks; asked != 1 {
		t.Errorf("%d looks, want that of the public one", asked)
	}
	a.TakeCredential(token(t, "right"))
	shows(t, a, "f", "2")
	until(t, "nothing is wrong", func() bool { return n.faults("private")+n.faults("public") == "" })
	if attached := n.attach(v); attached != a {
		t.Error("it is attached twice")
	}
}
