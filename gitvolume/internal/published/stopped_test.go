package published_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// No credential is kept for a volume whose PersistentVolume went.
func TestLingeringEndsWithThePersistentVolume(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	n.stopPush = 100 * time.Millisecond
	n.restart()
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published().write("g", "1")
	_ = away(t, b)
	p.unpublish()
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
