package published_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/gitvolume/internal/gittest"
)

// What a dead remote kept from being pushed at the stop is pushed without a pod, and the
// volume is done with then.
func TestDeadRemoteAtTheStop(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	n.stopPush = 300 * time.Millisecond
	n.restart()
	running(t, n)
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published().write("g", "1")
	back := away(t, b)
	p.unpublish()
	if n.posts.has("Pod/pod-a GitVolumePushFailed") == 0 {
		t.Errorf("the pod is not told: %q", n.posts.all)
	}
	p.unstage()
	if n.posts.has("PersistentVolumeClaim/claim-pv GitVolumePushFailed: 1 commit is on this node alone") == 0 {
		t.Errorf("the claim is not told: %q", n.posts.all)
	}
	back()
	arrives(t, b, "g", "1")
	until(t, "nothing is left to push", func() bool { return !p.record().Position.Owes() })
	until(t, "the volume is done with", func() bool {
		n.volumes.LookAtTargets(t.Context())
		return !n.volumes.Holds("pv")
	})
}

// silent is a forge that can be had not to answer until it ends.
func silent(t testing.TB, b *gittest.Bare) (url string, silence, end func()) {
	t.Helper()
	var isSilent atomic.Bool
	ended := make(chan struct{})
	server := gittest.StartHTTP(t, filepath.Dir(b.Dir), gittest.HTTPOptions{Around: func(git http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isSilent.Load() {
				<-ended
				return
			}
			git.ServeHTTP(w, r)
		})
	}})
	end = sync.OnceFunc(func() {
		isSilent.Store(false)
		close(ended)
	})
	t.Cleanup(end)
	return server.URL("/" + filepath.Base(b.Dir)), func() { isSilent.Store(true) }, end
}

// A remote that is away keeps no pod from going: the push at the stop is tried once, and
// once more at the unstage, for no longer than it may take, nor than the kubelet waits.
func TestDeadRemoteKeepsNoPod(t *testing.T) {
	for name, row := range map[string]struct {
		isSilent           bool
		stopPush, deadline time.Duration
		atLeast, lessThan  time.Duration // Each of the two calls.
	}{
		"it refuses":                      {false, 2 * time.Minute, 10 * time.Minute, 0, time.Minute},
		"it is silent":                    {true, 500 * time.Millisecond, 10 * time.Minute, 500 * time.Millisecond, time.Minute},
		"it is silent, the call is short": {true, 10 * time.Minute, 18 * time.Second, 3 * time.Second, 18 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := remoteWith(t, "1")
			url, silence, end := silent(t, b)
			n := newNode(t)
			n.stopPush = row.stopPush
			n.restart()
			p := n.writer("pv", "a", url).armed().staged(nil).published()
			if row.isSilent {
				silence()
			} else {
				away(t, b)
			}
			p.write("g", "1")
			p.takes("unpublish", row.deadline, row.atLeast, row.lessThan, func(ctx context.Context) error { return n.volumes.Unpublish(ctx, "pv", p.target) })
			p.takes("unstage", row.deadline, row.atLeast, row.lessThan, func(ctx context.Context) error { return n.volumes.Unstage(ctx, "pv") })
			if r := p.record(); !r.Position.HasUnpushed() || r.Staged || len(r.Targets) > 0 {
				t.Errorf("the record is %+v", r)
			}
			end() // The end of the driver pushes too.
		})
	}
}

// takes expects a call to succeed before its deadline, after a time.
func (p *pod) takes(what string, deadline, atLeast, lessThan time.Duration, call func(ctx context.Context) error) {
	p.n.t.Helper()
	ctx, cancel := context.WithTimeout(p.n.t.Context(), deadline)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	if took := time.Since(began); err != nil || ctx.Err() != nil || took < atLeast || took >= lessThan {
		p.n.t.Errorf("%s: %v after %s, want none after %s, before %s", what, err, took, atLeast, lessThan)
	}
}

// unpushed is a volume that is staged alone, and has a commit that its remote does not take.
func unpushed(t *testing.T) *pod {
	t.Helper()
	b := remoteWith(t, "1")
	n := newNode(t)
	n.stopPush = 100 * time.Millisecond
	n.restart()
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published().write("g", "1")
	_ = away(t, b)
	p.unpublish()
	return p
}

// No credential is kept for a volume whose PersistentVolume went.
func TestLingeringEndsWithThePersistentVolume(t *testing.T) {
	p := unpushed(t)
	n := p.n
	p.unstage()
	n.volumes.LookAtTargets(t.Context())
	if !n.volumes.Holds("pv") {
		t.Error("it does not linger")
	}
	n.cluster.deletes("pv")
	n.volumes.LookAtTargets(t.Context())
	if n.volumes.Holds("pv") {
		t.Error("it lingers without a PersistentVolume")
	}
	if !p.record().Position.HasUnpushed() {
		t.Error("the commit is forgotten")
	}
}

// Nor for one whose PersistentVolume went before the volume lingered, while it was unstaged.
func TestNothingLingersWithoutAPersistentVolume(t *testing.T) {
	p := unpushed(t)
	n := p.n
	n.cluster.deletes("pv")
	p.unstage()
	if n.volumes.Holds("pv") {
		t.Error("it lingers without a PersistentVolume")
	}
}

// Without a credential a stop commits, says that nothing was pushed, and succeeds at once.
func TestNoCredentialAtTheStop(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.writer("pv", "a", f.url).armed().staged(right).with(right).published()
	n.restart()
	began := time.Now()
	p.write("g", "1").unpublish()
	if took := time.Since(began); took > n.stopPush {
		t.Errorf("it took %s", took)
	}
	if n.posts.has("Pod/pod-a GitVolumePushFailed") == 0 {
		t.Errorf("the pod is not told: %q", n.posts.all)
	}
	if r := p.record(); !r.Position.HasUnpushed() || len(r.Targets) > 0 {
		t.Errorf("the record is %+v", r)
	}
	p.unstage()
	n.writer("pv", "b", f.url).staged(right).with(right).published()
	arrives(t, f.Bare, "g", "1")
}

// A crash between the unmount and the commit, or a reboot, leaves a tree with changes that
// nobody has.
func TestTreeThatACrashLeft(t *testing.T) {
	for name, found := range map[string]func(n *node, p *pod){
		"the unpublish is repeated":      func(_ *node, p *pod) { p.unpublish() },
		"the kubelet knows nothing more": func(n *node, _ *pod) { running(n.t, n) },
		"the unstage comes":              func(_ *node, p *pod) { p.unstage() },
	} {
		t.Run(name, func(t *testing.T) {
			b := remoteWith(t, "1")
			n := newNode(t)
			p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published()
			n.stop()
			p.write("g", "1")
			n.must(unix.Unmount(p.target, 0))
			n.start()
			found(n, p)
			until(t, "it is committed", func() bool { return p.record().Position.HasUnpushed() })
			next := n.writer("pv", "b", urlOf(b)).staged(nil).published()
			arrives(t, b, "g", "1")
			if r := p.record(); len(r.Targets) != 1 || r.Targets[0].Pod.UID != "b" {
				t.Errorf("the targets are %+v", r.Targets)
			}
			next.unpublish()
		})
	}
}

// A pod that went without an unpublish keeps nobody from the tree, and what it wrote is
// committed first.
func TestPodThatVanished(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published().write("g", "1")
	n.must(unix.Unmount(p.target, 0))
	n.must(os.RemoveAll(filepath.Dir(p.target)))
	n.writer("pv", "b", urlOf(b)).staged(nil).published().shows("g", "1")
	arrives(t, b, "g", "1")
}
