package nodevolume_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/report"
)

const metadataRef = "refs/git-csi/metadata"

// modeIs expects a file of the tree to have a mode.
func (v *volume) modeIs(path string, want os.FileMode) {
	v.p.t.Helper()
	if info, err := os.Stat(filepath.Join(v.tree(), path)); err != nil || info.Mode() != want {
		v.p.t.Errorf("%s is %v, want %v (%v)", path, info, want, err)
	}
}

func (v *volume) writePrivate(path, content string) {
	v.p.t.Helper()
	v.write(path, content)
	check(v.p.t, os.Chmod(filepath.Join(v.tree(), path), 0o640))
}

// elsewhere is the volume on a node that has nothing of it yet.
func elsewhere(t *testing.T, url string) *volume {
	t.Helper()
	p := newProcess(t, newDir(t))
	v := p.volume(wants(url)).publish()
	t.Cleanup(func() {
		check(t, v.Stop(context.Background(), 30*time.Second)) // The test's own context is done.
		p.end()
	})
	return v
}

// TestMetadataRefused is C47 (a) to (c): of the branch and the record that go together, the
// branch may go alone and the record never.
func TestMetadataRefused(t *testing.T) {
	t.Parallel()
	refuse := func(ref string) func(upstream *gittest.Bare) {
		return func(upstream *gittest.Bare) { upstream.Hook("update", "test $1 != "+ref) }
	}
	for name, row := range map[string]struct {
		remote           func(upstream *gittest.Bare)
		branch, metadata bool
		fault            []report.Fault
	}{
		"the metadata alone": {refuse(metadataRef), true, false, []report.Fault{report.MetadataRefused}},
		"the branch alone":   {refuse("refs/heads/main"), false, false, []report.Fault{report.PushFailed}},
		"nothing, one by one": {func(upstream *gittest.Bare) {
			upstream.Git("config", "receive.advertiseAtomic", "false")
		}, true, true, nil},
		"the metadata, one by one": {func(upstream *gittest.Bare) {
			upstream.Git("config", "receive.advertiseAtomic", "false")
			refuse(metadataRef)(upstream)
		}, true, false, []report.Fault{report.MetadataRefused}},
		"the branch, one by one": {func(upstream *gittest.Bare) {
			upstream.Git("config", "receive.advertiseAtomic", "false")
			refuse("refs/heads/main")(upstream)
		}, false, false, []report.Fault{report.PushFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := gittest.NewBare(t)
			put(t, upstream, "main", files{"a": "1"})
			p := newProcess(t, newDir(t))
			v := p.volume(wants(upstream.Dir)).publish()
			row.remote(upstream)
			before := upstream.Tip("refs/heads/main")
			v.writePrivate("b", "1")
			if row.branch {
				arrives(t, upstream, "main", files{"a": "1", "b": "1"})
			}
			v.soon(row.fault...)
			if row.metadata { // The second of two pushes.
				within(t, 2*time.Minute, func() bool { return upstream.Tip(metadataRef) != "" }, func() string { return "the metadata does not arrive" })
			}
			if (upstream.Tip("refs/heads/main") != before) != row.branch || (upstream.Tip(metadataRef) != "") != row.metadata {
				t.Errorf("the refs are %v", upstream.Refs())
			}
			if row.branch && !row.metadata {
				// It is not offered with each push.
				v.write("c", "1")
				arrives(t, upstream, "main", files{"a": "1", "b": "1", "c": "1"})
				if n := p.events.count("GitVolumePushFailed"); n != 1 {
					t.Errorf("%d Events tell of the metadata, want 1", n)
				}
				elsewhere(t, upstream.Dir).modeIs("b", 0o644)
			}
			upstream.Hook("update", "")
			v.TakeCredential()
			if !row.branch {
				arrives(t, upstream, "main", files{"a": "1", "b": "1"})
				v.soon()
			}
			if row.metadata || !row.branch {
				elsewhere(t, upstream.Dir).modeIs("b", 0o640)
			}
			v.stop()
			p.end()
		})
	}
}

// TestMetadataOfTwo is C47 (d): two volumes of two refs write the one metadata ref at the
// same moments, and no entry of either is lost.
func TestMetadataOfTwo(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	put(t, upstream, "other", files{"a": "1"})
	wishes := []wish{wants(upstream.Dir), {handle: "second", url: upstream.Dir, ref: "other", arming: armed(), anonymous: true}}
	var volumes []*volume
	for _, w := range wishes {
		volumes = append(volumes, newProcess(t, newDir(t)).volume(w).publish())
	}
	const rounds = 6
	want := files{"a": "1"}
	for round := range rounds {
		var together sync.WaitGroup
		path := fmt.Sprint("f", round)
		for _, v := range volumes {
			together.Go(func() { v.writePrivate(path, "1") })
		}
		together.Wait()
		want[path] = "1"
		for _, v := range volumes {
			arrives(t, upstream, v.wish.ref, want)
		}
	}
	for _, v := range volumes {
		v.stop()
		v.faultsAre()
		v.p.end()
		p := newProcess(t, newDir(t))
		fresh := p.volume(v.wish).publish()
		for round := range rounds {
			fresh.modeIs(fmt.Sprint("f", round), 0o640)
		}
		fresh.stop()
		p.end()
	}
}

// TestMetadataLost is C47 (e) and (f): a metadata ref that somebody deleted or that names
// something else keeps nobody from the tree, and is made again.
func TestMetadataLost(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(upstream *gittest.Bare){
		"deleted": func(upstream *gittest.Bare) { upstream.Git("update-ref", "-d", metadataRef) },
		"an unrelated commit": func(upstream *gittest.Bare) {
			upstream.SetRef(metadataRef, upstream.Commit(files{"readme": "nothing of yours"}))
		},
		"garbage": func(upstream *gittest.Bare) {
			path, _, _ := strings.Cut(upstream.Git("ls-tree", "-r", "--name-only", metadataRef), "\n")
			upstream.SetRef(metadataRef, upstream.Commit(files{path: "\x00\xffgarbage"}))
		},
		"a blob": func(upstream *gittest.Bare) {
			upstream.SetRef(metadataRef, upstream.Git("rev-parse", "main:a"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := gittest.NewBare(t)
			put(t, upstream, "main", files{"a": "1"})
			p := newProcess(t, newDir(t))
			v := p.volume(wants(upstream.Dir)).publish()
			v.writePrivate("b", "1")
			arrives(t, upstream, "main", files{"a": "1", "b": "1"})
			v.stop()
			harm(upstream)
			lost := elsewhere(t, upstream.Dir)
			lost.has(files{"a": "1", "b": "1"})
			lost.modeIs("b", 0o644)
			check(t, v.Publish(t.Context()))
			v.modeIs("b", 0o640)
			v.writePrivate("c", "1")
			arrives(t, upstream, "main", files{"a": "1", "b": "1", "c": "1"})
			v.stop()
			v.faultsAre()
			again := elsewhere(t, upstream.Dir)
			again.modeIs("c", 0o640)
			again.modeIs("b", 0o640)
			p.end()
		})
	}
}

// A stop comes while the record is pushed, after its branch: it is pushed by the stop, and
// not put off as one that was refused.
func TestStopWhileMetadataIsPushed(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	upstream.Git("config", "receive.advertiseAtomic", "false")
	upstream.Hook("update", "test $1 != "+metadataRef+" || test -e slow || { touch slow; sleep 3; }")
	p := newProcess(t, newDir(t))
	v := p.volume(wants(upstream.Dir)).publish()
	v.writePrivate("b", "1")
	within(t, 2*time.Minute, func() bool {
		_, err := os.Stat(filepath.Join(upstream.Dir, "slow"))
		return err == nil
	}, func() string { return "the metadata is not pushed" })
	v.stop()
	v.faultsAre()
	if upstream.Tip(metadataRef) == "" {
		t.Error("the metadata was not pushed")
	}
	p.end()
}
