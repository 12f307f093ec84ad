package nodevolume_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

// answer is what a server does with a push in place of git.
type answer func(git http.Handler, w http.ResponseWriter, r *http.Request)

// status answers with an HTTP status, as forges and the proxies before them do.
func status(code int) answer {
	return func(_ http.Handler, w http.ResponseWriter, r *http.Request) {
		if code == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		}
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "20")
		}
		_, _ = io.Copy(io.Discard, r.Body)
		http.Error(w, "no", code)
	}
}

// hangUp closes the connection once the pack is there, without an answer.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

// gate is a server that answers pushes otherwise as long as it is shut.
type gate struct {
	shut  atomic.Bool
	asked atomic.Int32
	// listing has the list of refs that a push begins with be answered so too.
	listing bool
	answer  answer
}

func (g *gate) around(git http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		posts := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
		lists := g.listing && r.URL.Query().Get("service") == "git-receive-pack"
		if g.shut.Load() && (posts || lists) {
			g.asked.Add(1)
			g.answer(git, w, r)
			return
		}
		git.ServeHTTP(w, r)
	})
}

func (g *gate) serve(t *testing.T, upstream *gittest.Bare) (url string) {
	t.Helper()
	server := gittest.StartHTTP(t, filepath.Dir(upstream.Dir), gittest.HTTPOptions{User: "git", Around: g.around})
	return server.URL("/" + filepath.Base(upstream.Dir))
}

// TestRefusedOverHTTP is C36 over HTTP: none of these refusals is a ref that moved. What is
// committed stays, and arrives once when the refusal is over, without another write.
func TestRefusedOverHTTP(t *testing.T) {
	for name, row := range map[string]struct {
		gate  *gate
		words string
	}{
		"401":             {&gate{answer: status(http.StatusUnauthorized)}, "refuses the credential"},
		"403":             {&gate{answer: status(http.StatusForbidden)}, "403"},
		"403 of the list": {&gate{answer: status(http.StatusForbidden), listing: true}, "403"},
		"413":             {&gate{answer: status(http.StatusRequestEntityTooLarge)}, "413"},
		"503":             {&gate{answer: status(http.StatusServiceUnavailable)}, "503"},
		"closed after the pack": {&gate{answer: func(_ http.Handler, w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			hangUp(w)
		}}, "cannot be reached"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := gittest.NewBare(t)
			put(t, upstream, "main", files{"f": "1"})
			p := newProcess(t, newDir(t))
			v := p.volume(wants(row.gate.serve(t, upstream))).publish()
			before := upstream.Tip("refs/heads/main")
			row.gate.shut.Store(true)
			v.write("f", "2")
			v.soon(report.PushFailed)
			if message := v.report.Abnormal()[0].Message; !strings.Contains(message, row.words) {
				t.Errorf("it says %q, want %q", message, row.words)
			}
			if row.gate.asked.Load() == 0 {
				t.Error("the server was not asked")
			}
			if refs := upstream.Refs(); len(refs) != 1 || refs["refs/heads/main"] != before {
				t.Errorf("the refs are %v, want main as it was", refs)
			}
			if got := v.Position(); !got.HasUnpushed() || got.Diverged {
				t.Errorf("the position is %+v, want a commit that waits", got)
			}
			row.gate.shut.Store(false)
			v.TakeCredential() // Or after the delay.
			arrives(t, upstream, "main", files{"f": "2"})
			v.soon()
			v.stop()
			if got := upstream.Git("rev-list", "--count", "main"); got != "2" {
				t.Errorf("%s commits, want 2", got)
			}
			if n := p.events.count("GitVolumeRebased"); n != 0 {
				t.Errorf("%d rebases", n)
			}
			p.end()
		})
	}
}

// A push that arrived, of which the answer did not, is known to have: it is neither sent
// again nor a failure, be it the first or one among others.
func TestAnswerLostOverHTTP(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"f": "1"})
	g := &gate{answer: func(git http.Handler, w http.ResponseWriter, r *http.Request) {
		git.ServeHTTP(httptest.NewRecorder(), r)
		hangUp(w)
	}}
	p := newProcess(t, newDir(t))
	v := p.volume(wants(g.serve(t, upstream))).publish()
	g.shut.Store(true)
	for i := range 3 {
		v.write("f", strconv.Itoa(i+2))
		arrives(t, upstream, "main", files{"f": strconv.Itoa(i + 2)})
		within(t, patience, func() bool { return !v.Position().HasUnpushed() }, func() string { return "it counts as not pushed" })
	}
	if g.asked.Load() == 0 {
		t.Error("no answer was lost")
	}
	v.faultsAre()
	v.stop()
	if got := upstream.Git("rev-list", "--count", "main"); got != "4" {
		t.Errorf("%s commits, want 4", got)
	}
	p.end()
	upstream.Git("fsck", "--strict")
}
