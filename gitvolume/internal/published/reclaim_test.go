package published_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/store"
)

// left is a tree that a pod wrote and nobody has any more, of a PersistentVolume with the
// policy.
func (n *node) left(pv, url, policy string) *pod {
	n.t.Helper()
	p := n.writer(pv, "pod-of-"+pv, url).armed()
	n.cluster.tells(pv, func(v *persistentvolume.Volume) { v.ReclaimPolicy = policy })
	p.staged(nil).published().write("g-"+pv, "1").unpublish()
	p.unstage()
	return p
}

func (p *pod) isKept() bool {
	_, err := p.n.store.Load(p.wish.Handle)
	return !errors.Is(err, store.ErrNoRecord)
}

// A tree goes with its PersistentVolume if the policy that was seen last says so, and is in
// the trash then.
func TestReclaim(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	retained, deleted, changed := n.left("retained", urlOf(b), "Retain"), n.left("deleted", urlOf(b), "Delete"), n.left("changed", urlOf(b), "Retain")
	again, staged := n.left("again", urlOf(b), "Delete"), n.left("staged", urlOf(b), "Delete")
	n.must(n.volumes.Reclaim(t.Context())) // It follows them from here on.
	n.cluster.tells("changed", func(v *persistentvolume.Volume) { v.ReclaimPolicy = "Delete" })
	staged.staged(nil)
	n.must(n.volumes.Reclaim(t.Context()))
	if n.cluster.confirmed > 0 {
		t.Errorf("the API server was asked %d times while every volume was named", n.cluster.confirmed)
	}
	for _, pv := range []string{"retained", "deleted", "changed", "again", "staged"} {
		n.cluster.deletes(pv)
	}
	// Another PersistentVolume has the handle by now, of which only a live read knows.
	n.cluster.exists("another-name", "again")
	n.must(n.volumes.Reclaim(t.Context()))
	for _, row := range []struct {
		p    *pod
		want bool
	}{{retained, true}, {deleted, false}, {changed, false}, {again, true}, {staged, true}} {
		if row.p.isKept() != row.want {
			t.Errorf("%s: kept %t, want %t", row.p.wish.Handle, !row.want, row.want)
		}
	}
	trees, err := filepath.Glob(filepath.Join(n.dir, "trash", "kept", "*", "deleted", "tree", "g-deleted"))
	if err != nil || len(trees) != 1 {
		t.Errorf("in the trash are %q, %v", trees, err)
	}
	staged.unstage()
	n.must(n.volumes.Reclaim(t.Context()))
	if staged.isKept() {
		t.Error("a volume is kept that is not staged any more")
	}
}

// A volume whose PersistentVolume is watched already, as that of a tree which nobody had,
// learns what is known of it when a pod comes.
func TestAVolumeJoinsItsWatch(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.left("pv", urlOf(b), "Retain")
	n.restart()
	n.must(n.volumes.Reclaim(t.Context())) // It follows the PersistentVolume from here on.
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.ClaimUID = "of-the-next-claim" })
	p.staged(nil).published()
	until(t, "whose it is now", func() bool { return p.record().Claim.UID == "of-the-next-claim" })
}

// Nothing is removed while it is not certain that the PersistentVolume is gone, from the
// store's own cluster.
func TestReclaimOnlyWhatIsCertain(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.left("pv", urlOf(b), "Delete")
	n.must(n.volumes.Reclaim(t.Context()))
	n.cluster.isAway("pv") // Not known is not gone.
	n.must(n.volumes.Reclaim(t.Context()))
	n.cluster.deletes("pv")
	n.cluster.fails(os.ErrDeadlineExceeded)
	if err := n.volumes.Reclaim(t.Context()); err == nil {
		t.Error("a read that failed is none")
	}
	n.cluster.fails(nil)
	n.must(n.store.SetCluster("another"))
	if err := n.volumes.Reclaim(t.Context()); !errors.Is(err, persistentvolume.ErrOtherCluster) {
		t.Errorf("another cluster: %v", err)
	}
	if !p.isKept() {
		t.Fatal("the tree is gone")
	}
	n.must(n.store.SetCluster(clusterUID))
	n.restart() // Down when it happened.
	running(t, n)
	until(t, "it is removed", func() bool { return !p.isKept() })
}

// A pod that was refused is remembered for a while, and the tree with it; when it did not
// come again, nothing else keeps the tree.
func TestReclaimWhenNoPodWaitsAnyMore(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).armed()
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.ReclaimPolicy = "Delete" })
	p.staged(nil).published()
	n.writer("pv", "b", urlOf(b)).refused(published.ErrHeld, "apps/pod-a")
	p.unpublish()
	p.unstage()
	n.cluster.deletes("pv")
	n.volumes.ReclaimIsDue()
	n.must(n.volumes.Reclaim(t.Context()))
	if !p.isKept() {
		t.Error("it is gone while a pod waits for it")
	}
	n.volumes.Tire()
	n.volumes.LookAtTargets(t.Context())
	if !n.volumes.ReclaimIsDue() {
		t.Error("nobody looks whether it is needed")
	}
	n.must(n.volumes.Reclaim(t.Context()))
	if p.isKept() {
		t.Error("it is kept for nobody")
	}
}
