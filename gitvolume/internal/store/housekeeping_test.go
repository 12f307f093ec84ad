package store

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/history"
)

func (f *fixture) tidy() {
	f.t.Helper()
	f.must(f.store.Tidy(f.t.Context(), noGC))
}

func TestTidyKeepsWhatARecordFollows(t *testing.T) {
	f := newFixture(t)
	f.volume("v")
	reader := Record{Handle: "reader", Kind: ReadOnly, URL: mustURL(aURL), Ref: "v1"}
	pinned := Record{Handle: "pinned", Kind: Inline, URL: mustURL(aURL), Ref: strings.Repeat("a", 40)}
	elsewhere := Record{Handle: "elsewhere", Kind: ReadOnly, URL: mustURL(otherURL), Ref: "side"}
	for _, r := range []Record{reader, pinned, elsewhere} {
		f.must(f.store.Save(r))
	}
	followed := []string{
		RemoteRef("refs/heads/main"), RemoteRef("refs/heads/main.v"), RemoteRef(history.MetadataRef), RemoteRef(pinned.Ref),
		RemoteRef("refs/tags/v1"), RemoteRef("refs/heads/v1"), VolumeRef("v", AnchorTip), VolumeRef("v", AnchorNext),
	}
	unfollowed := []string{RemoteRef("refs/heads/side"), RemoteRef("refs/heads/v1.reader"), VolumeRef("gone", AnchorTip), VolumeRef("v2", AnchorTip), VolumeRef("elsewhere", AnchorTip), "refs/git-csi/of-old"}
	r := f.repository(aURL)
	f.commit(r, append(append(slices.Clone(followed), unfollowed...), "refs/heads/by-hand")...)
	f.tidy()
	if got, want := slices.Sorted(maps.Keys(f.refs(r))), slices.Sorted(slices.Values(followed)); !slices.Equal(got, want) {
		t.Errorf("refs %q,\nwant %q", got, want)
	}
	repository, err := history.Open(r.Dir())
	f.must(err)
	defer repository.Close()
	if _, err := repository.Ref("refs/heads/by-hand"); err != nil {
		t.Errorf("a ref that is not the driver's: %v", err)
	}
}

func TestTidyRemovesARepositoryThatNothingNames(t *testing.T) {
	f := newFixture(t)
	f.volume("v")
	used, unused := f.repository(aURL), f.repository(otherURL)
	f.commit(used, VolumeRef("v", AnchorTip))
	f.commit(unused, RemoteRef("refs/heads/main"), VolumeRef("gone", AnchorTip))
	f.must(os.Mkdir(filepath.Join(f.dir, reposDir, "lost+found"), 0o700))
	broken := f.repository("https://example.com/broken")
	f.must(os.Mkdir(broken.Dir(), 0o700)) // Killed before it was made.
	f.tidy()
	if !f.exists(reposDir, used.name) || !f.exists(reposDir, "lost+found") {
		t.Error("too much was removed")
	}
	if f.exists(reposDir, unused.name) || f.exists(reposDir, broken.name) || f.glob(trashDir+"/now/.*/"+unused.name) != 1 {
		t.Error("the unused one is not in the trash")
	}
	if text := f.log.String(); !strings.Contains(text, "repo=example.com/o/other.git") {
		t.Errorf("logged %q", text)
	}
}

// A tree is kept for good, and its commits with it, whatever became of its record.
func TestTidyKeepsWhatATreeMayNeed(t *testing.T) {
	for name, spoil := range map[string]func(f *fixture){
		"the record is lost":               func(f *fixture) { f.must(os.Remove(f.store.path(volumesDir, "v", recordFile))) },
		"the record is damaged":            func(f *fixture) { f.must(os.Truncate(f.store.path(volumesDir, "v", recordFile), 9)) },
		"the record is of a later release": func(f *fixture) { f.write(`{"version":9}`, volumesDir, "v", recordFile) },
		"the volume is in the trash":       func(f *fixture) { f.must(f.store.Remove("v")) },
		"the volume is in the trash of a full disk": func(f *fixture) {
			f.must(os.Rename(filepath.Join(f.dir, volumesDir, "v"), filepath.Join(f.dir, trashDir, keptDir, ".0-X-v")))
		},
		"the volume is in the trash, its record damaged": func(f *fixture) {
			f.write(`{"version":1,"handle":"v"}`, volumesDir, "v", recordFile)
			f.must(f.store.Remove("v"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.volume("v")
			r := f.repository(aURL)
			f.commit(r, VolumeRef("v", AnchorTip), VolumeRef("w", AnchorTip))
			spoil(f)
			f.tidy()
			if refs := f.refs(r); !refs[VolumeRef("v", AnchorTip)] || refs[VolumeRef("w", AnchorTip)] {
				t.Errorf("refs %v", refs)
			}
		})
	}
}

func TestTidyAfterTheTrashIsEmpty(t *testing.T) {
	f := newFixture(t)
	f.volume("v")
	r := f.repository(aURL)
	f.commit(r, VolumeRef("v", AnchorTip))
	f.must(f.store.Remove("v"))
	items, err := filepath.Glob(filepath.Join(f.dir, trashDir, keptDir, ".*"))
	f.must(err)
	f.must(os.RemoveAll(items[0]))
	f.tidy()
	if f.exists(reposDir, r.name) {
		t.Error("the repository of a volume that is gone for good is still there")
	}
}

func TestTidyLeavesARepositoryInUseAlone(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	f.commit(r, RemoteRef("refs/heads/main"))
	release, err := r.Use(t.Context())
	f.must(err)
	f.tidy()
	if len(f.refs(r)) != 1 {
		t.Error("a ref went while the repository was used")
	}
	release()
	f.tidy()
	if f.exists(reposDir, r.name) {
		t.Error("it is still there")
	}
}

// The record comes while the repository was looked at already: what was seen then does not
// count.
func TestTidyReadsTheRecordsWhenNobodyCanUseTheRepository(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	f.commit(r, RemoteRef("refs/heads/main"), RemoteRef("refs/heads/other"))
	seen, err := f.store.followed()
	f.must(err)
	f.must(f.store.Save(aRecord("v")))
	f.must(f.store.tidy(t.Context(), r.name, seen, noGC))
	if refs := f.refs(r); !refs[RemoteRef("refs/heads/main")] || refs[RemoteRef("refs/heads/other")] {
		t.Errorf("refs %v", refs)
	}
}

// gc counts the collections, and does what git's does to the times of a repository.
type gc struct {
	runs  int
	fails bool
}

func (g *gc) run(_ context.Context, dir string) error {
	g.runs++
	if g.fails {
		return errTest
	}
	touched := filepath.Join(dir, "objects", "info", "packs")
	return errors.Join(os.WriteFile(touched, nil, 0o600), os.Remove(touched))
}

func TestGarbageIsCollectedWhereSomethingWasWritten(t *testing.T) {
	f := newFixture(t)
	f.volume("v")
	r := f.repository(aURL)
	f.commit(r, VolumeRef("v", AnchorTip))
	g := &gc{}
	step := func(what string, want int) {
		t.Helper()
		before := g.runs
		_ = f.store.Tidy(t.Context(), g.run)
		if got := g.runs - before; got != want {
			t.Errorf("%s: %d collections, want %d", what, got, want)
		}
	}
	ago := func(file string, age time.Duration) {
		t.Helper()
		f.must(os.Chtimes(filepath.Join(r.Dir(), file), time.Time{}, time.Now().Add(-age)))
	}
	step("just made", 0)
	ago(aboutFile, 2*time.Hour)
	g.fails = true
	step("made two hours ago, and git fails", 1)
	g.fails = false
	step("again", 1)
	step("nothing was written since", 0)
	ago(collectedFile, 2*time.Hour)
	step("nothing was written for two hours", 0)
	f.commitMore(r, 1)
	step("written, two hours after", 1)
	f.commitMore(r, 1)
	step("written, at once", 0)
	ago(collectedFile, -2*time.Hour)
	step("the clock was put back", 1)
	f.commitMore(r, manyPacks+1)
	step("many packs, at once", 1)
	f.restart()
	step("after a restart", 0)
}

// commitMore adds packs.
func (f *fixture) commitMore(r Repository, packs int) {
	f.t.Helper()
	repository, err := history.Open(r.Dir())
	f.must(err)
	defer repository.Close()
	for i := range packs {
		_, err := repository.Blob([]byte(time.Now().String() + strings.Repeat("x", i)))
		f.must(err)
		f.must(repository.Flush())
	}
	// The clock of a file system may stand still for some milliseconds.
	time.Sleep(10 * time.Millisecond)
	f.must(os.Chtimes(filepath.Join(r.Dir(), "objects", "pack"), time.Time{}, time.Now()))
}

func TestWrittenAsksForTidinessAtManyPacks(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	f.commit(r)
	r.Written()
	if len(f.store.wake) != 0 {
		t.Error("it asks at one pack")
	}
	f.commitMore(r, manyPacks)
	r.Written()
	if len(f.store.wake) != 1 {
		t.Error("it does not ask")
	}
}

func TestKeepTidy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.must(f.store.Save(aRecord("v")))
		r := f.repository(aURL)
		f.commit(r, RemoteRef("refs/heads/main"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); f.store.KeepTidy(ctx, noGC) }()
		there := func(want bool, after time.Duration) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if f.exists(reposDir, r.name) != want {
				t.Errorf("after %s: there is %v", after, !want)
			}
		}
		there(true, time.Minute)
		f.must(f.store.Remove("v")) // It asks for it.
		there(false, time.Second)
		f.commit(r, RemoteRef("refs/heads/main"))
		there(true, 2*time.Minute)
		there(false, tidyEvery)
		cancel()
		<-done
	})
}
