package published_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/mount"
	"liken.sh/csicommon/persistentvolume"
	"liken.sh/csicommon/target"
	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/published"
	"liken.sh/gitvolume/internal/remote"
)

func remoteWith(t testing.TB, content string) *gittest.Bare {
	t.Helper()
	b := gittest.NewBare(t)
	b.Grow("main", "f", content)
	return b
}

// C01 and C11: one mount however often it is asked for, and nobody can write through it.
func TestPublish(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	for _, p := range []*pod{n.inline("a", urlOf(b)), n.claimed("pv", "b", urlOf(b))} {
		for range 3 {
			p.published()
		}
		p.shows("f", "1")
		n.restart()
		for range 3 {
			p.published()
		}
		if m, mounted, err := n.mounts.At(p.target); !mounted || !m.ReadOnly || err != nil {
			t.Errorf("mounted %t, %+v, %v", mounted, m, err)
		}
		for what, err := range map[string]error{
			"make a file":   os.WriteFile(filepath.Join(p.target, "x"), nil, 0o644),
			"write a file":  os.WriteFile(filepath.Join(p.target, "f"), nil, 0o644),
			"change a mode": os.Chmod(filepath.Join(p.target, "f"), 0o600),
			"link":          os.Link(filepath.Join(p.target, "f"), filepath.Join(p.target, "g")),
			"set xattr":     unix.Setxattr(filepath.Join(p.target, "f"), "user.a", []byte("1"), 0),
		} {
			if !errors.Is(err, unix.EROFS) {
				t.Errorf("%s: %v, want EROFS", what, err)
			}
		}
		p.unpublish()
		if _, err := os.Lstat(p.target); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the target is left: %v", err)
		}
		p.unpublish()
	}
	n.isEmpty()
}

// Two pods of one claim see one tree; it goes with the second of them.
func TestTwoPodsOfAClaim(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	first, second := n.claimed("pv", "a", urlOf(b)).published(), n.claimed("pv", "b", urlOf(b)).published()
	first.unpublish()
	second.shows("f", "1")
	n.restart()
	second.published().shows("f", "1")
	first.published().unpublish()
	second.unpublish()
	n.isEmpty()
	if len(n.cluster.followed) > 0 {
		t.Errorf("still followed: %v", n.cluster.followed)
	}
}

// C02: everything that is gone already is success.
func TestUnpublishOfWhatIsGone(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.claimed("pv", "a", urlOf(b))
	p.unpublish() // Never published.
	p.published()
	n.must(unix.Unmount(p.target, 0))
	p.unpublish()
	p.published()
	n.must(unix.Unmount(p.target, 0))
	n.must(os.Remove(p.target))
	p.unpublish()
	p.published()
	n.stop()
	n.must(unix.Unmount(p.target, 0)) // A reboot.
	n.start()
	p.unpublish()
	n.isEmpty()
	n.must(os.RemoveAll(filepath.Dir(p.target)))
	p.unpublish()
	n.must(n.volumes.Unpublish(t.Context(), "../x", p.target)) // What could never be a handle.
}

func TestRefusals(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	for name, row := range map[string]struct {
		pod   *pod
		want  error
		words string
		event string
	}{
		"an attribute":       {n.inline("a", urlOf(b), "branch", "x"), attributes.ErrInvalid, `"branch" is not known`, "Pod/pod-a GitVolumeRefused: "},
		"a ref":              {n.inline("b", urlOf(b), "ref", "gone"), remote.ErrNoRef, "gone", "Pod/pod-b GitVolumeFetchFailed: "},
		"no such repository": {n.inline("c", "file:///nonexistent/r.git"), nil, "", "Pod/pod-c GitVolumeFetchFailed: "},
		"in the store":       {n.inline("d", urlOf(b)), target.ErrTarget, "inside the store", "Pod/pod-d GitVolumeRefused: "},
	} {
		p := row.pod
		if name == "in the store" {
			p.target = filepath.Join(n.dir, "checkouts", "x")
			p.wish.Target = p.target
		}
		for range 2 {
			if row.want == nil {
				if err := p.publish(); err == nil {
					t.Errorf("%s: no error", name)
				}
				continue
			}
			p.refused(row.want, row.words)
		}
		if got := n.posts.has(row.event); got != 1 {
			t.Errorf("%s: %d Events %q, want one within a minute: %q", name, got, row.event, n.posts.all)
		}
	}
}

// C13: a mount that the kubelet would not see is none.
func TestPrivatePropagation(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	n.must(unix.Mount("none", n.kubelet, "", unix.MS_PRIVATE, ""))
	n.inline("a", urlOf(b)).refused(mount.ErrNotShared, "propagation")
	n.isEmpty()
}

// C17: what is left of a dead file system is neither hidden nor taken for the volume.
func TestSomethingElseIsMounted(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.inline("a", urlOf(b))
	n.must(os.Mkdir(p.target, 0o750))
	n.must(unix.Mount("other", p.target, "tmpfs", 0, ""))
	if err := p.publish(); !errors.Is(err, target.ErrOccupied) {
		t.Errorf("publish: %v, want ErrOccupied", err)
	}
	p.unpublish()
	p.published().shows("f", "1")
}

// C12: one target by every spelling.
func TestSpellings(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	link := filepath.Join(t.TempDir(), "kl")
	n.must(os.Symlink(n.kubelet, link))
	p := n.inline("a", urlOf(b))
	below, err := filepath.Rel(n.kubelet, p.target)
	n.must(err)
	spellings := []string{link + "/" + below, n.kubelet + "//" + below, n.kubelet + "/./" + below, p.target}
	for _, spelled := range spellings {
		p.target, p.wish.Target = spelled, spelled
		p.published()
	}
	if n.mounts.binds != 1 {
		t.Errorf("%d binds, want one", n.mounts.binds)
	}
	p.target = spellings[0]
	p.unpublish()
	n.isEmpty()
}

// What a publish that is repeated must not do.
func TestRepublishAsksNobody(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.claimed("pv", "a", urlOf(b)).with(map[string]string{"token": "t"}).published()
	binds, events := n.mounts.binds, len(n.posts.all)
	n.must(os.Rename(b.Dir, b.Dir+".away"))
	for i := range 3 {
		if !n.volumes.Republish("pv", p.target, true, map[string]string{"token": "t" + strconv.Itoa(i)}) {
			t.Error("a repeated publish is none")
		}
	}
	if n.mounts.binds != binds || n.mounts.unbinds != 0 || len(n.posts.all) != events {
		t.Errorf("%d binds, %d unbinds, Events %q", n.mounts.binds-binds, n.mounts.unbinds, n.posts.all[events:])
	}
}

// The driver was not asked when its target was unmounted: the next publish mounts it.
func TestATargetThatIsNoMountAnyMore(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.claimed("pv", "a", urlOf(b)).published()
	n.must(unix.Unmount(p.target, 0))
	n.volumes.LookAtTargets(t.Context())
	p.becomes("TargetNotMounted")
	p.published().shows("f", "1")
	p.becomes("")
	// A pod that went while the driver was away takes its volume with it.
	n.must(unix.Unmount(p.target, 0))
	n.must(os.RemoveAll(filepath.Dir(p.target)))
	n.volumes.LookAtTargets(t.Context())
	n.isEmpty()
}

// After a reboot nothing is mounted; what nobody asks for any more goes.
func TestReboot(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	stays, gone := n.claimed("stays", "a", urlOf(b)).published(), n.claimed("gone", "b", urlOf(b)).published()
	n.stop()
	n.must(unix.Unmount(stays.target, 0))
	n.must(unix.Unmount(gone.target, 0))
	n.must(os.RemoveAll(filepath.Dir(gone.target)))
	n.start()
	n.volumes.DropGone(t.Context())
	records, _, err := n.store.All()
	n.must(err)
	if len(records) != 1 || records[0].Handle != "stays" {
		t.Errorf("the records are %+v", records)
	}
	stays.published().shows("f", "1")
	stays.unpublish()
	n.isEmpty()
}

// What the cluster says: the claim's name for Events, and demands.
func TestTheClusterSays(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.claimed("pv", "a", urlOf(b), "pull", "on-demand").published()
	b.Grow("main", "f", "2")
	n.cluster.tells("pv", nil)
	n.cluster.tells("pv", func(v *persistentvolume.Volume) {
		v.Annotations = map[string]string{published.DemandAnnotation: time.Now().String()}
	})
	p.shows("f", "2")
	n.restart() // A restart is a demand.
	b.Grow("main", "f", "3")
	n.restart()
	p.shows("f", "3")
	n.must(os.Rename(b.Dir, b.Dir+".away"))
	n.cluster.tells("pv", func(v *persistentvolume.Volume) {
		v.Annotations = map[string]string{published.DemandAnnotation: "again"}
	})
	p.becomes("FetchFailed")
	if n.posts.has("PersistentVolumeClaim/claim-pv GitVolumeFetchFailed") != 1 || n.posts.has("Pod/pod-a GitVolumeFetchFailed") != 1 {
		t.Errorf("the Events are %q", n.posts.all)
	}
}

func TestSpace(t *testing.T) {
	b := remoteWith(t, "1")
	n := newNode(t)
	p := n.claimed("pv", "a", urlOf(b)).published()
	running(t, n)
	space, err := n.volumes.Space(t.Context(), "pv", p.target)
	if err != nil || space.Used.Inodes != 2 || space.Used.Bytes == 0 || space.Bytes == 0 || space.AvailableInodes == 0 {
		t.Errorf("%+v, %v", space, err)
	}
	if _, err := n.volumes.Space(t.Context(), "other", p.target); !errors.Is(err, published.ErrNotPublished) {
		t.Errorf("another volume: %v", err)
	}
	for _, at := range []string{n.kubelet, "relative", "/", n.kubelet + "/..", filepath.Join(p.target, "f", "x")} {
		if _, err := n.volumes.Space(t.Context(), "pv", at); !errors.Is(err, published.ErrNotPublished) {
			t.Errorf("at %q: %v", at, err)
		}
	}
}
