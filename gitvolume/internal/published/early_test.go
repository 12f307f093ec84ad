package published_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/remote"
)

// publishWithin is a publish of which the deadline is so near that nothing is waited for.
func (p *pod) publishWithin(left time.Duration) error {
	ctx, cancel := context.WithTimeout(p.n.t.Context(), left)
	defer cancel()
	return p.n.volumes.Publish(ctx, p.wish)
}

// slow is a forge that answers only once it may.
func slow(t testing.TB, b *gittest.Bare) (url string, answer func()) {
	t.Helper()
	gate := make(chan struct{})
	answer = sync.OnceFunc(func() { close(gate) })
	server := gittest.StartHTTP(t, filepath.Dir(b.Dir), gittest.HTTPOptions{Around: func(git http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-gate
			git.ServeHTTP(w, r)
		})
	}})
	t.Cleanup(answer)
	return server.URL("/" + filepath.Base(b.Dir)), answer
}

// A clone that takes several calls is the volume's all the time: what goes wrong with it
// later is told of the volume that the last of them showed.
func TestACloneOfSeveralCallsIsReported(t *testing.T) {
	b := remoteWith(t, "1")
	url, answer := slow(t, b)
	n := newNode(t)
	p := n.claimed("pv", "a", url)
	for range 2 {
		// Less than what is kept for the answer.
		if err := p.publishWithin(5 * time.Second); !errors.Is(err, remote.ErrInProgress) {
			t.Fatalf("publish: %v, want ErrInProgress", err)
		}
		n.volumes.LookAtTargets(t.Context())
	}
	if len(n.posts.all) > 0 {
		t.Errorf("Events of a call that came too early: %q", n.posts.all)
	}
	answer()
	p.published().shows("f", "1")
	n.must(os.Rename(b.Dir, b.Dir+".away"))
	n.demand("pv", "1")
	p.becomes("FetchFailed")
	for _, about := range []string{"Pod/pod-a", "PersistentVolumeClaim/claim-pv"} {
		if n.posts.has(about+" GitVolumeFetchFailed: ") != 1 {
			t.Errorf("no Event on %s: %q", about, n.posts.all)
		}
	}
	p.unpublish()
	n.isEmpty()
}

// Nobody comes for what was cloned: nothing of it stays, and who comes late begins anew.
func TestACloneThatNobodyComesFor(t *testing.T) {
	b := remoteWith(t, "1")
	url, answer := slow(t, b)
	n := newNode(t)
	p := n.claimed("pv", "a", url)
	if err := p.publishWithin(5 * time.Second); !errors.Is(err, remote.ErrInProgress) {
		t.Fatalf("publish: %v, want ErrInProgress", err)
	}
	until(t, "it is on its way", func() bool { records, _, err := n.store.All(); return err == nil && len(records) == 1 })
	n.volumes.Tire()
	n.volumes.LookAtTargets(t.Context())
	n.isEmpty()
	if len(n.cluster.followed) > 0 {
		t.Errorf("still followed: %v", n.cluster.followed)
	}
	answer()
	p.published().shows("f", "1")
	n.must(os.Rename(b.Dir, b.Dir+".away"))
	n.demand("pv", "1")
	p.becomes("FetchFailed")
}

// A Secret that rotates between stage and publish: the first call comes before the API
// server has said which Secrets these are, and its answer must be there for the next.
func TestWhatIsAskedForAPublishIsThereForTheNext(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.claimed("pv", "a", f.url).staged(wrong).with(right)
	p.refused(published.ErrTooEarly, "not known yet")
	if n.cluster.followed["pv"] != 1 {
		t.Errorf("followed are %v", n.cluster.followed)
	}
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.StageSecret, v.PublishSecret = "apps/s", "apps/s" })
	p.published().shows("f", "1")
	p.unpublish()
	n.isEmpty()
}

// A call that failed and says so only after another has succeeded, which does not show the
// volume yet, takes back nothing of that.
func TestALateFailure(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.claimed("pv", "a", urlOf(b))
	n.volumes.RefuseLate(p.wish, remote.ErrUnreachable, func() { n.volumes.Fetched("pv") })
	if got := p.faults(); got != "" {
		t.Errorf("the faults are %s", got)
	}
	if n.posts.has("Pod/pod-a GitVolumeFetchFailed") != 1 {
		t.Errorf("no Event on the pod: %q", n.posts.all)
	}
	p.published()
}
