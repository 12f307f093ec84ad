package published_test

import (
	"os"
	"path/filepath"
	"testing"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/published"
)

// sharing is two pods, each with a claim of a PersistentVolume of its own, which have one
// handle and name these Secrets.
func (n *node) sharing(f *forge, secretOfA, secretOfB string) (a, b *pod) {
	n.t.Helper()
	for pv, secret := range map[string]string{"pv-a": secretOfA, "pv-b": secretOfB} {
		n.cluster.tells(pv, func(v *persistentvolume.Volume) { v.Handle, v.PublishSecret = "h", secret })
	}
	return n.pod(attributes.KindReadOnlyClaim, "h", "pv-a", "a", f.url), n.pod(attributes.KindReadOnlyClaim, "h", "pv-b", "b", f.url)
}

// The kubelet repeats the publishes of two PersistentVolumes in turns. That must not have
// the remote be asked each time, nor one of them lose what it has because of the other.
func TestSecretsOfOneHandleAreNotTakenInTurns(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	a, b := n.sharing(f, "apps/a", "other/b")
	a.with(right).published()
	asked := f.asked.Load()
	b.with(fresh).refused(published.ErrSecrets, `"pv-b" has the volumeHandle of "pv-a"`)
	b.with(nil).refused(published.ErrSecrets, `"pv-b" has the volumeHandle of "pv-a"`)
	if got := f.asked.Load(); got != asked {
		t.Errorf("it was asked %d times for a pod that is refused", got-asked)
	}
	if got := n.posts.has("Pod/pod-b GitVolumeRefused"); got != 1 {
		t.Errorf("%d Events on the pod that is refused", got)
	}
	a.becomes("")
	b.with(right).published().becomes("")

	// One of them is changed under the pods.
	asked = f.asked.Load()
	for range 5 {
		b.with(fresh).published()
		a.published()
	}
	a.becomes("SecretsDiffer")
	if got := f.asked.Load(); got != asked {
		t.Errorf("it was asked %d times for Secrets that come in turns", got-asked)
	}
	n.demand("pv-a", "1")
	until(t, "it is asked", func() bool { return f.asked.Load() > asked })
	a.becomes("SecretsDiffer")

	// The plugin is restarted: the first that comes counts.
	f.wanted.Store("fresh")
	n.restart()
	b.published()
	a.published()
	f.Grow("main", "f", "2")
	n.demand("pv-a", "2")
	b.shows("f", "2")
	a.becomes("SecretsDiffer")

	// What counts goes with its last pod.
	b.unpublish()
	f.wanted.Store("right")
	a.published().becomes("")
	f.Grow("main", "f", "3")
	n.demand("pv-a", "3")
	a.shows("f", "3")
}

// The one Secret of both is rotated, and comes for one of them first.
func TestOneSecretOfOneHandleIsRotated(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	a, b := n.sharing(f, "apps/a", "apps/a")
	a.with(right).published()
	b.with(right).published()
	f.wanted.Store("fresh")
	b.with(fresh).published()
	f.Grow("main", "f", "2")
	n.demand("pv-b", "1")
	a.shows("f", "2")
	a.with(fresh).published().becomes("")
}

// plain has the pod's target be one that names no PersistentVolume.
func (p *pod) plain() *pod {
	p.n.t.Helper()
	p.target = filepath.Join(p.n.kubelet, "plain", p.wish.Pod.UID)
	p.wish.Target = p.target
	p.n.must(os.MkdirAll(filepath.Dir(p.target), 0o750))
	return p
}

// A target that names no PersistentVolume is by custom of one that has the name of the
// handle. When the cluster has answered that there is none, nothing is waited for.
func TestTargetsThatNameNoPersistentVolume(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.claimed("pv", "a", f.url).plain().staged(wrong).with(right)
	p.refused(published.ErrTooEarly, "not known yet")
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.Handle = "other" })
	p.refused(published.ErrSecrets, `there is no PersistentVolume "pv" with the driver git.example and the volumeHandle "pv"`)
	if got := n.posts.has("Pod/pod-a GitVolumeRefused"); got != 1 {
		t.Errorf("%d Events on the pod that is refused", got)
	}
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.Handle, v.StageSecret, v.PublishSecret = "pv", "apps/s", "apps/s" })
	p.published().shows("f", "1")

	w := n.pod(attributes.KindWriteable, "w", "w", "b", f.url).plain().with(right)
	n.cluster.tells("w", func(v *persistentvolume.Volume) { v.Handle = "other" })
	w.refused(published.ErrNoVolume, `there is no PersistentVolume "w"`)
	n.cluster.tells("w", func(v *persistentvolume.Volume) { v.Handle = "w" })
	w.published().shows("f", "1")
}

// A PersistentVolume that is gone tells nothing any more.
func TestTheClaimOfAVolumeThatIsGone(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	n.cluster.deletes("pv")
	n.pod(attributes.KindWriteable, "pv", "pv", "a", f.url).with(right).refused(published.ErrNoVolume, `"pv"`)
}

// The kubelet stages two PersistentVolumes of one handle once, with the Secret of one of
// them. That lets in no pod of the other, and is sent to no other repository.
func TestTheStageOfOneHandleIsOfOnePersistentVolume(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	a, b := n.sharing(f, "", "")
	names := func(ofA, ofB string) {
		n.cluster.tells("pv-a", func(v *persistentvolume.Volume) { v.Handle, v.StageSecret = "h", ofA })
		n.cluster.tells("pv-b", func(v *persistentvolume.Volume) { v.Handle, v.StageSecret = "h", ofB })
	}
	names("apps/a", "other/b")
	a.staged(right).published()
	b.refused(published.ErrSecrets, "")
	a.unpublish()
	b.staged(wrong)
	a.staged(right).published().unpublish()
	b.refused(published.ErrSecrets, "")
	names("apps/a", "apps/a")
	b.published()
}

// What was staged for one repository is not sent to another.
func TestAStageIsOfOneRepository(t *testing.T) {
	f, other := newForge(t), newForge(t)
	n := newNodeOverHTTP(t)
	n.claimed("pv", "a", f.url).staged(right)
	n.claimed("pv", "b", other.url).refused(published.ErrSecrets, "")
	if got := other.asked.Load(); got != 0 {
		t.Errorf("the other repository was asked %d times", got)
	}
}
