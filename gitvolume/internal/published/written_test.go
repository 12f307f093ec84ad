package published_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/store"
)

// writer is a pod that has a claim to write to, of a PersistentVolume whose name is its
// handle, and of which the cluster has told.
func (n *node) writer(pv, uid, url string, more ...string) *pod {
	n.t.Helper()
	n.cluster.knows(pv)
	return n.pod(attributes.KindWriteable, pv, pv, uid, url, more...)
}

// armed has the volume's record name a class that commits soon.
func (p *pod) armed() *pod {
	p.n.t.Helper()
	url, err := attributes.ParseURL(p.wish.Attributes["url"])
	p.n.must(err)
	fast := policy.Default()
	fast.Quiesce, fast.MaxLatency = 50*time.Millisecond, time.Minute
	p.n.must(p.n.store.Save(store.Record{
		Handle: p.wish.Handle, Kind: store.Writeable, URL: url, Ref: "main", Class: store.Class{Name: "fast", Policy: &fast},
	}))
	return p
}

// write is what the application does.
func (p *pod) write(path, content string) *pod {
	p.n.t.Helper()
	p.n.must(os.WriteFile(filepath.Join(p.target, path), []byte(content), 0o644))
	return p
}

// tree is where the store has what the pod writes.
func (p *pod) tree() string { return p.n.store.TreeDir(p.wish.Handle) }

func (p *pod) unstage() {
	p.n.t.Helper()
	p.n.must(p.n.volumes.Unstage(p.n.t.Context(), p.wish.Handle))
}

func (p *pod) record() store.Record {
	p.n.t.Helper()
	r, err := p.n.store.Load(p.wish.Handle)
	p.n.must(err)
	return r
}

// arrives waits until the remote's branch has the file with the content.
func arrives(t testing.TB, b *gittest.Bare, path, content string) {
	t.Helper()
	until(t, path+" with "+content+" at the remote", func() bool {
		got, err := b.TryGit("cat-file", "blob", "main:"+path)
		return err == nil && got == content
	})
}

// away has the remote be dead until it is back.
func away(t testing.TB, b *gittest.Bare) (back func()) {
	t.Helper()
	if err := os.Rename(b.Dir, b.Dir+".away"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Rename(b.Dir+".away", b.Dir); err != nil {
			t.Fatal(err)
		}
	}
}

// A pod writes, its writes arrive, and the next pod starts from them; nobody else has the
// tree meanwhile.
func TestWrite(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil)
	for range 3 {
		p.published()
	}
	if n.mounts.binds != 1 {
		t.Errorf("%d binds", n.mounts.binds)
	}
	if m, mounted, err := n.mounts.At(p.target); !mounted || m.ReadOnly || err != nil {
		t.Errorf("mounted %t, %+v, %v", mounted, m, err)
	}
	p.shows("f", "1")
	p.write("g", "2")
	arrives(t, b, "g", "2")
	if trailer := b.Git("log", "-1", "--format=%b", "main"); !strings.Contains(trailer, "Volume: apps/claim-pv") {
		t.Errorf("the commit says %q", trailer)
	}
	second := n.writer("pv", "b", urlOf(b))
	second.refused(published.ErrHeld, "apps/pod-a")
	second.unpublish()

	p.write("g", "3").unpublish()
	arrives(t, b, "g", "3") // The stop pushes, and waits for that.
	if r := p.record(); len(r.Targets) > 0 || !r.Staged || r.Reading != nil {
		t.Errorf("the record after the unpublish is %+v", r)
	}
	p.unpublish()
	p.unstage()
	p.unstage()
	if r := p.record(); r.Staged || r.Position.HasUnpushed() {
		t.Errorf("the record after the unstage is %+v", r)
	}
	if n.volumes.Abnormal("pv") != nil {
		t.Errorf("abnormal: %v", n.volumes.Abnormal("pv"))
	}
	b.Grow("main", "f", "4")
	next := n.writer("pv", "c", urlOf(b)).staged(nil).published()
	next.shows("f", "4")
	next.unpublish()
	next.unstage()
	// The tree stays, and is to go with its PersistentVolume.
	if len(n.cluster.followed) != 1 || n.cluster.followed["pv"] != 1 {
		t.Errorf("followed are %v, want the tree's alone", n.cluster.followed)
	}
}

// Without a class what is written is told of, and stays.
func TestUnarmed(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).staged(nil).published()
	until(t, "it is told", func() bool { return n.posts.has("Pod/pod-a GitVolumeUnarmed") == 1 })
	p.write("g", "2").becomes("PathsPending")
	p.unpublish()
	p.unstage()
	if got := b.Git("rev-list", "--count", "main"); got != "1" {
		t.Errorf("%s commits", got)
	}
	n.writer("pv", "b", urlOf(b)).staged(nil).published().shows("g", "2")
}

// A stage under a running pod takes the credential and changes nothing else.
func TestStageUnderARunningPod(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.writer("pv", "a", f.url).armed().staged(right).with(right).published()
	p.write("g", "1")
	arrives(t, f.Bare, "g", "1")
	until(t, "all is well", func() bool { return p.faults() == "" && !p.record().Position.Owes() })
	asked, before := f.asked.Load(), p.record()
	for range 3 {
		p.staged(right)
	}
	p.staged(map[string]string{"token": "", "x": "y"})
	if got := f.asked.Load(); got != asked {
		t.Errorf("the remote was asked %d times", got-asked)
	}
	if after := p.record(); after.Position.Tip != before.Position.Tip || len(after.Targets) != 1 {
		t.Errorf("the record was %+v and is %+v", before, after)
	}
	p.becomes("")
}

// A repeated publish asks neither the remote, nor the mounts, nor the disk, and tells nobody
// anything.
func TestRepublishOfAWriter(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.writer("pv", "a", f.url).armed().staged(right).with(right).published()
	p.write("g", "1")
	arrives(t, f.Bare, "g", "1")
	until(t, "all is well", func() bool { return p.faults() == "" && !p.record().Position.Owes() })
	var before, after unix.Stat_t
	n.must(unix.Stat(n.recordOf("pv"), &before))
	asked, told, binds, unbinds := f.asked.Load(), n.posts.has(""), n.mounts.binds, n.mounts.unbinds
	for range 100 {
		p.published()
	}
	n.must(unix.Stat(n.recordOf("pv"), &after))
	if before.Ino != after.Ino || before.Mtim != after.Mtim {
		t.Error("the record was written")
	}
	if f.asked.Load() != asked || n.posts.has("") != told || n.mounts.binds != binds || n.mounts.unbinds != unbinds {
		t.Errorf("the remote was asked %d times, %d Events were posted, %d binds and %d unbinds made",
			f.asked.Load()-asked, n.posts.has("")-told, n.mounts.binds-binds, n.mounts.unbinds-unbinds)
	}
}

// A pod writes on while the driver is away: its writes are committed after the restart, at
// once, and pushed when the credential is back.
func TestRestartUnderAWriter(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.writer("pv", "a", f.url).armed().staged(right).with(right).published().write("g", "1")
	n.stop()
	arrives(t, f.Bare, "g", "1") // The end pushes.
	p.write("g", "2")
	binds, unbinds := n.mounts.binds, n.mounts.unbinds
	n.start()
	if n.mounts.binds+n.mounts.unbinds > 0 {
		t.Errorf("of %d binds and %d unbinds before the restart made %d and %d", binds, unbinds, n.mounts.binds, n.mounts.unbinds)
	}
	p.becomes("CredentialMissing")
	until(t, "it is committed", func() bool { return p.record().Position.HasUnpushed() })
	f.wanted.Store("fresh")
	p.with(fresh).published() // It was rotated meanwhile.
	arrives(t, f.Bare, "g", "2")
	p.becomes("")
	p.write("g", "3").unpublish()
	arrives(t, f.Bare, "g", "3")
}

// A Secret that was rotated has what could not be pushed be pushed at once, and one that is
// none changes nothing.
func TestRotatedSecretOfAWriter(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.writer("pv", "a", f.url).armed().staged(right).with(right).published()
	f.wanted.Store("fresh")
	p.write("g", "1").becomes("PushFailed")
	p.with(map[string]string{"token": "", "x": "y"}).published()
	p.becomes("CredentialMalformed PushFailed")
	p.with(fresh).published()
	arrives(t, f.Bare, "g", "1")
	p.becomes("")
}

// Without a Secret a restarted driver learns from the cluster that there never was one.
func TestRestartWithoutASecret(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published()
	n.cluster.isAway("pv")
	n.restart()
	p.published().becomes("CredentialMissing")
	p.write("g", "1")
	n.cluster.tells("pv", nil)
	arrives(t, b, "g", "1")
	p.becomes("")
}

// The application starts from the tree of the node whatever the remote does.
func TestKeptTreeAndADeadRemote(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).armed()
	back := away(t, b)
	if err := p.staged(nil).publish(); err == nil {
		t.Error("a volume is published of which nothing was ever fetched")
	}
	p.becomes("FetchFailed")
	back()
	p.staged(nil).published().write("g", "1").unpublish()
	p.unstage()
	back = away(t, b)
	next := n.writer("pv", "b", urlOf(b)).staged(nil).published()
	next.shows("g", "1")
	next.becomes("Stale")
	back()
}

// A pod whose mount was taken off has it again, and nothing of the tree is moved meanwhile.
func TestTargetOfARunningWriterIsLost(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published()
	n.must(unix.Unmount(p.target, 0))
	n.volumes.LookAtTargets(t.Context())
	p.becomes("TargetNotMounted")
	b.Grow("main", "f", "2")
	p.published().becomes("")
	p.shows("f", "1")
	p.write("g", "1")
	arrives(t, b, "g", "1")
}

// A kept tree is never pointed elsewhere, and never taken for another kind of volume.
func TestKeptTreeIsRefused(t *testing.T) {
	b, other := remoteWith(t, "1"), remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published().write("g", "1")
	p.unpublish()
	p.unstage()
	for name, another := range map[string]*pod{
		"URL": n.writer("pv", "b", urlOf(other)), "ref": n.writer("pv", "c", urlOf(b), "ref", "other"),
		"kind": n.claimed("pv", "d", urlOf(b)),
	} {
		if err := another.staged(nil).publish(); err == nil {
			t.Errorf("another %s is published", name)
		}
		if got := n.posts.has("Pod/pod-" + another.wish.Pod.UID + " GitVolumeRefused"); got != 1 {
			t.Errorf("another %s: %d Events, %q", name, got, n.posts.all)
		}
		another.unpublish()
		another.unstage()
	}
	next := n.writer("pv", "e", urlOf(b)).staged(nil).published()
	next.shows("g", "1")
	next.unpublish()

	// A record that cannot be read does not make its tree nobody's.
	n.must(os.WriteFile(filepath.Join(n.dir, "volumes", "pv", "record.json"), []byte("{"), 0o600))
	next.unpublish()
	n.claimed("pv", "f", urlOf(b)).refused(published.ErrOtherKind, "")
	if _, err := os.Lstat(next.tree()); err != nil {
		t.Errorf("the tree is gone: %v", err)
	}
}

// A new tree is made neither on a store that is full, nor on one that a reboot empties; a
// kept one is shown all the same.
func TestNoRoomForANewTree(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("kept", "a", urlOf(b)).armed().staged(nil).published()
	p.unpublish()
	for _, row := range []struct {
		node  func()
		words string
	}{
		{func() { n.minFree = store.Free{Bytes: 1 << 60} }, "full"},
		{func() { n.minFree, n.volatile = store.Free{}, "it is on a tmpfs" }, "tmpfs"},
	} {
		n.stop()
		row.node()
		n.start()
		if err := n.writer("new", "b", urlOf(b)).publish(); err == nil || !strings.Contains(err.Error(), row.words) {
			t.Errorf("%v, want %q", err, row.words)
		}
		n.writer("kept", "a", urlOf(b)).staged(nil).published().unpublish()
	}
}

// Applications of any user can write a fresh tree; with a volume mount group it is that
// group's, and none of this is recorded as the application's.
func TestVolumeMountGroup(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	stat := func(p *pod, path string, wantMode os.FileMode, wantGroup int) {
		t.Helper()
		var s unix.Stat_t
		n.must(unix.Lstat(filepath.Join(p.tree(), path), &s))
		if got := os.FileMode(s.Mode & 0o7777); got != wantMode || wantGroup >= 0 && int(s.Gid) != wantGroup {
			t.Errorf("%q is %o of %d, want %o of %d", path, got, s.Gid, wantMode, wantGroup)
		}
	}
	p := n.writer("pv", "a", urlOf(b)).armed().staged(nil).published()
	stat(p, "", 0o777, os.Getegid())
	stat(p, "f", 0o644, os.Getegid())
	p.write("g", "1").unpublish()

	// There has to be a second group for the rest, which an ordinary user's name space has not.
	if err := os.Chown(p.tree(), -1, 1); err != nil {
		t.Skipf("no other group can be given anything: %v", err)
	}
	n.must(os.Chown(p.tree(), -1, os.Getegid()))
	group := uint32(1)
	p = n.writer("pv", "b", urlOf(b))
	p.wish.Group = &group
	p.staged(nil).published()
	stat(p, "", 0o2777, 1)
	stat(p, "f", 0o664, 1)
	stat(p, "g", 0o664, 1)
	p.write("h", "1")
	arrives(t, b, "h", "1")
	p.unpublish()
	fresh := n.writer("fresh", "c", urlOf(b)).armed()
	fresh.wish.Group = &group
	fresh.staged(nil).published()
	stat(fresh, "", 0o2777, 1)
	stat(fresh, "f", 0o664, 1)
	fresh.write("i", "1")
	arrives(t, b, "i", "1")
	fresh.unpublish()
	if record, err := b.TryGit("ls-tree", "-r", "--name-only", "refs/git-csi/metadata"); err == nil {
		for _, name := range strings.Fields(record) {
			if text := b.Git("cat-file", "blob", "refs/git-csi/metadata:"+name); strings.Contains(text, `"f"`) || strings.Contains(text, `"g"`) {
				t.Errorf("recorded is %s", text)
			}
		}
	}
}

// A pod that only reads has a mount that it cannot write, and not both at one target.
func TestWriteableClaimReadOnly(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.writer("pv", "a", urlOf(b)).armed()
	p.wish.Options.ReadOnly = true
	for range 2 {
		p.staged(nil).published()
		if err := os.WriteFile(filepath.Join(p.target, "f"), nil, 0o644); !errors.Is(err, unix.EROFS) {
			t.Errorf("a write: %v, want EROFS", err)
		}
		p.wish.Options.ReadOnly = false
		if err := p.publish(); !errors.Is(err, published.ErrOtherMount) {
			t.Errorf("the other flag: %v, want ErrOtherMount", err)
		}
		p.wish.Options.ReadOnly = true
		n.restart()
		n.cluster.tells("pv", nil)
	}
}

// Secrets of stage and publish that differ are refused, unless they are one that was rotated.
func TestSecretsOfAWriterDiffer(t *testing.T) {
	f := newForge(t)
	n := newNodeOverHTTP(t)
	p := n.writer("pv", "a", f.url).armed()
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.StageSecret, v.PublishSecret = "apps/a", "apps/b" })
	p.staged(right).with(fresh).refused(published.ErrSecrets, "name one Secret in both")
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.PublishSecret = "apps/a" })
	f.wanted.Store("fresh")
	p.published().write("g", "1")
	arrives(t, f.Bare, "g", "1")
	p.unpublish()
	p.unstage()

	// The stage's alone serves until a restart, of which it is told.
	n.cluster.tells("pv", func(v *persistentvolume.Volume) { v.PublishSecret = "" })
	p = n.writer("pv", "b", f.url).staged(fresh).published().write("g", "2")
	until(t, "it is told", func() bool { return n.posts.has("Pod/pod-b GitVolumeNoPublishSecret") == 1 })
	arrives(t, f.Bare, "g", "2")
	n.restart()
	n.cluster.tells("pv", nil)
	until(t, "it is told again", func() bool { return n.posts.has("Pod/pod-b GitVolumeNoPublishSecret") == 2 })
	p.published().becomes("CredentialMissing")
	p.unpublish()
	// The tree is shown all the same.
	n.writer("pv", "c", f.url).published().shows("g", "2")
}

// What the cluster has not told yet is waited for, not guessed: by its claim the volume's
// commits are known.
func TestClaimThatIsNotKnown(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.pod(attributes.KindWriteable, "pv", "pv", "a", urlOf(b)).armed()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := n.volumes.Publish(ctx, p.wish); err == nil {
		t.Error("it is published")
	}
	n.cluster.tells("pv", nil)
	p.published()
}
