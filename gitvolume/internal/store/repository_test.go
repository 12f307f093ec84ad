package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/csicommon/keyedmutex"
	"liken.sh/csicommon/storedir"
	"liken.sh/gitvolume/internal/history"
)

func TestRepositoryIsMadeOnce(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	if f.exists(reposDir, r.name) {
		t.Error("it is there before its first use")
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			release, err := r.Use(t.Context())
			must(t, err)
			defer release()
			repository, err := history.Open(r.Dir())
			must(t, err)
			repository.Close()
		})
	}
	wait.Wait()
	before, err := r.Instance()
	f.must(err)
	f.restart()
	r = f.repository(aURL)
	f.commit(r)
	if after, err := r.Instance(); err != nil || after != before {
		t.Errorf("%v and then %v, %v", before, after, err)
	}
	f.commit(f.store.Repository(mustURL(aURL), 3))
	f.commit(f.repository(otherURL))
	found, err := f.store.Repositories()
	f.must(err)
	var names []string
	for _, r := range found {
		names = append(names, r.URL.String(), strings.Repeat("#", r.Depth))
	}
	if got, want := strings.Join(names, " "), otherURL+"  "+aURL+"  "+aURL+" ###"; got != want {
		t.Errorf("repositories %q, want %q", got, want)
	}
	if _, err := (f.store.Repository(fullRecord().URL, 0)).Instance(); err == nil {
		t.Error("one that was never used is there")
	}
	var none Repository
	none.store = f.store
	if _, err := none.Use(t.Context()); err == nil {
		t.Error("one without a URL is used")
	}
}

// TestWhoComesLateToMakeIt waits for none of those who use it since another has made it.
func TestWhoComesLateToMakeIt(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	release, err := r.Use(t.Context())
	f.must(err)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	late, err := r.makeAndUse(ctx)
	f.must(err)
	late()
}

func TestSetAsideWaitsForTheUsers(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	f.commit(r, RemoteRef("refs/heads/main"))
	instance, err := r.Instance()
	f.must(err)
	release, err := r.Use(t.Context())
	f.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = r.SetAside(ctx, instance, "broken")
	f.wants(err, keyedmutex.ErrBusy)
	release()
	path, err := r.SetAside(t.Context(), instance, "broken")
	f.must(err)
	why, err := os.ReadFile(filepath.Join(filepath.Dir(path), aboutFile))
	if err != nil || !strings.Contains(string(why), aURL) || !strings.Contains(string(why), "broken") {
		t.Errorf("%s, %v", why, err)
	}
	// The second of two volumes that found it broken comes later, and must not set the
	// new one aside.
	f.commit(r)
	if path, err := r.SetAside(t.Context(), instance, "broken"); err != nil || path != "" {
		t.Errorf("set aside again: %q, %v", path, err)
	}
	if len(f.refs(r)) != 0 {
		t.Error("the new one has the old one's refs")
	}
}

// TestSetAsideGivesUp has one of the users wait for its remote, for as long as a push may: the
// others go on soon.
func TestSetAsideGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		r := f.repository(aURL)
		f.commit(r)
		instance, err := r.Instance()
		f.must(err)
		pushing, err := r.Use(t.Context())
		f.must(err)
		var wait sync.WaitGroup
		for i := range 5 { // As many volumes find it broken, one after the other.
			wait.Go(func() {
				time.Sleep(time.Duration(i) * 3 * time.Second)
				began := time.Now()
				_, err := r.SetAside(t.Context(), instance, "broken")
				if took := time.Since(began); !errors.Is(err, keyedmutex.ErrBusy) || !errors.Is(err, errInUse) || took != longestSeizing {
					t.Errorf("after %s: %v", took, err)
				}
			})
		}
		for i := range 30 {
			wait.Go(func() {
				time.Sleep(time.Duration(i)*time.Second + time.Millisecond)
				began := time.Now()
				release, err := r.Use(context.Background())
				must(t, err)
				if took := time.Since(began); took > longestSeizing {
					t.Errorf("a use %d s later waited for %s", i, took)
				}
				release()
			})
		}
		wait.Wait()
		pushing()
		if path, err := r.SetAside(t.Context(), instance, "broken"); err != nil || path == "" {
			t.Errorf("it was set aside at %q, %v", path, err)
		}
	})
}

func TestFewRepositoriesStayAside(t *testing.T) {
	f := newFixture(t)
	f.volume("v")
	_, err := f.store.SetAsideTree("v", "of a tree nothing goes")
	f.must(err)
	for range mostAside + 2 {
		for _, url := range []string{aURL, otherURL} {
			r := f.repository(url)
			f.commit(r)
			instance, err := r.Instance()
			f.must(err)
			_, err = r.SetAside(t.Context(), instance, "broken")
			f.must(err)
		}
	}
	if aside, gone := f.glob(asideDir+"/*/*/HEAD"), f.glob(trashDir+"/now/.*/*/*/HEAD"); aside != 2*mostAside || gone != 4 {
		t.Errorf("%d are aside and %d in the trash", aside, gone)
	}
	if f.glob(asideDir+"/*/tree/file") != 1 {
		t.Error("the tree is gone")
	}
}

func TestALinkIsNoRepository(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	victim := t.TempDir()
	f.must(os.Symlink(victim, r.Dir()))
	_, err := r.Use(t.Context())
	f.wants(err, storedir.ErrNotADirectory)
	if entries, err := os.ReadDir(victim); err != nil || len(entries) != 0 {
		t.Errorf("the link was followed: %v, %v", entries, err)
	}
	// It is set aside like one that is broken.
	f.must(f.store.Recover(t.Context(), noGit{}))
	f.commit(r)
	if entries, err := os.ReadDir(victim); err != nil || len(entries) != 0 {
		t.Errorf("the link was followed: %v, %v", entries, err)
	}
}

// Who uses a repository finds it there, whatever removes it in between.
func TestUseBesideRemovals(t *testing.T) {
	f := newFixture(t)
	r := f.repository(aURL)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		for ctx.Err() == nil {
			must(t, f.store.Tidy(t.Context(), noGC))
		}
	})
	for range 4 {
		wait.Go(func() {
			for range 25 {
				release, err := r.Use(t.Context())
				must(t, err)
				if !r.isThere() {
					t.Error("it is used and not there")
				}
				release()
			}
		})
	}
	for range 25 {
		f.commit(r)
	}
	cancel()
	wait.Wait()
}

func noGC(context.Context, string) error { return nil }

type noGit struct{}

func (noGit) Recover(context.Context, string) error { return nil }

var errTest = errors.New("test")
