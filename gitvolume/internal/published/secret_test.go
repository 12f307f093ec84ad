package published_test

import (
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/credential"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/remote"
)

// forge is a repository that wants a token, and counts who asks.
type forge struct {
	*gittest.Bare
	url    string
	wanted atomic.Value
	asked  atomic.Int64
}

func newForge(t testing.TB) *forge {
	t.Helper()
	f := &forge{Bare: remoteWith(t, "1")}
	f.wanted.Store("right")
	server := gittest.StartHTTP(t, filepath.Dir(f.Dir), gittest.HTTPOptions{Around: func(git http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.asked.Add(1)
			if _, given, _ := r.BasicAuth(); given != f.wanted.Load() {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			git.ServeHTTP(w, r)
		})
	}})
	f.url = server.URL("/r.git")
	return f
}

func newNodeOverHTTP(t testing.TB) *node {
	t.Helper()
	n := newNode(t)
	n.allowed = credential.Allowed{Insecure: true}
	return n.restart()
}

var (
	right = map[string]string{"token": "right"}
	wrong = map[string]string{"token": "wrong"}
	fresh = map[string]string{"token": "fresh"}
)

func TestSecrets(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	n.claimed("pv", "x", f.url).refused(remote.ErrAuthentication, "")
	p := n.claimed("pv", "a", f.url).with(right).published()
	// Another pod is not shown what this one's credential brought.
	n.claimed("pv", "b", f.url).with(wrong).refused(remote.ErrAuthentication, "")
	n.claimed("other", "c", f.url, "offline", "allowStale").with(wrong).refused(remote.ErrAuthentication, "")
	if got := n.posts.has("Pod/pod-b GitVolumeFetchFailed"); got != 1 {
		t.Errorf("%d Events on the pod that is refused", got)
	}
	p.becomes("") // It is no fault of the volume.

	// A malformed Secret at a republish keeps the last good one.
	p.with(map[string]string{"token": "", "x": "y"}).published()
	p.becomes("CredentialMalformed")
	asked := f.asked.Load()
	n.demand("pv", "1")
	until(t, "it is asked", func() bool { return f.asked.Load() > asked })
	p.becomes("CredentialMalformed")
	p.with(right).published().becomes("")

	// One that was rotated counts at once.
	f.wanted.Store("fresh")
	p.with(fresh).published()
	f.Grow("main", "f", "2")
	n.demand("pv", "2")
	p.shows("f", "2")

	// After a restart it waits, and says so.
	f.Grow("main", "f", "3")
	n.restart()
	p.becomes("CredentialMissing")
	p.shows("f", "2")
	p.published().shows("f", "3")
	p.becomes("")
}

func (n *node) demand(pv, value string) {
	n.cluster.tells(pv, func(v *persistentvolume.Volume) {
		v.Annotations = map[string]string{published.DemandAnnotation: value}
	})
}

func (p *pod) staged(secret map[string]string) *pod {
	p.n.t.Helper()
	p.n.must(p.stage(secret))
	return p
}

func (p *pod) stage(secret map[string]string) error {
	return p.n.volumes.Stage(p.n.t.Context(), published.Staging{
		Handle: p.wish.Handle, Kind: p.wish.Kind, Attributes: p.wish.Attributes, Secret: secret,
	})
}

// The Secret of the stage serves a publish without one, and must be told apart from
// another.
func TestStage(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	names := func(stage, publish string) {
		n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.StageSecret, v.PublishSecret = stage, publish })
	}
	p := n.claimed("pv", "a", f.url)
	p.staged(right).published().shows("f", "1")
	names("apps/s", "")
	for _, about := range []string{"Pod/pod-a", "PersistentVolumeClaim/claim-pv"} {
		if got := n.posts.has(about + " GitVolumeNoPublishSecret"); got != 1 {
			t.Errorf("%d Events about %s of the missing publish Secret", got, about)
		}
	}
	n.restart()
	p.becomes("CredentialMissing")
	p.published().becomes("CredentialMissing")
	names("apps/s", "")
	if got := n.posts.has("Pod/pod-a GitVolumeNoPublishSecret"); got != 2 {
		t.Errorf("%d Events after the restart, want two", got)
	}
	p.staged(right).becomes("") // The kubelet was restarted.
	p.unpublish()

	// The driver was restarted between stage and publish.
	n.restart()
	p.refusedOnceKnown(n, func() { names("apps/s", "") })

	// They differ: two names, one name rotated.
	p.staged(wrong).with(right)
	if err := p.publish(); err == nil {
		t.Error("Secrets that differ are taken")
	}
	names("apps/s", "apps/p")
	p.refused(published.ErrSecrets, "differ")
	names("apps/s", "apps/s")
	p.published().shows("f", "1")
	p.unpublish()
	n.must(n.volumes.Unstage(t.Context(), "pv"))
	n.isEmpty()

	if err := p.stage(map[string]string{"token": ""}); err == nil {
		t.Error("a malformed Secret is staged")
	}
	p.staged(nil).with(right).published()
	n.must(p.stage(map[string]string{"token": ""})) // It fails for nothing under a running pod.
}

// refusedOnceKnown expects a publish to be refused for its Secrets when the cluster has
// said which they are.
func (p *pod) refusedOnceKnown(n *node, tell func()) {
	n.t.Helper()
	if err := p.publish(); err == nil {
		n.t.Error("it is published with nobody's credential")
	}
	tell()
	p.refused(published.ErrSecrets, "nodePublishSecretRef")
}

// The PersistentVolume was made again without a Secret, and the stage before this one was
// never ended: what it brought is not this volume's. Neither does a token go over a
// connection that it would not have been taken for.
func TestAStageTakesTheEarlierOnesPlace(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.claimed("pv", "a", f.url).staged(right).staged(nil)
	p.refused(remote.ErrAuthentication, "")

	n.allowed = credential.Allowed{}
	n.restart()
	p.wish.Attributes["url"] = "https://127.0.0.1/r.git"
	p.staged(right)
	p.wish.Attributes["url"] = f.url
	p.refused(credential.ErrUnfit, "")
}
