package remote

import (
	"errors"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/object"
)

func TestListAndResolve(t *testing.T) {
	onEachKindThatReads(t, func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) {
		refs, err := c.List(t.Context(), remote, "main")
		check(t, err)
		_, err = refs.Resolve("main")
		var missing *MissingRef
		if !errors.As(err, &missing) || !missing.Empty || !errors.Is(err, ErrNoRef) {
			t.Errorf("of an empty repository: %v", err)
		}
		main := b.Grow("main", "f", "1")
		release := b.Commit(map[string]string{"f": "branch"})
		tagged := b.Commit(map[string]string{"f": "tag"})
		b.SetRef("refs/heads/release", release)
		b.SetRef("refs/tags/release", tagged)
		b.SetRef("refs/heads/20260817", main)
		b.SetRef("refs/heads/deadbeef", main)
		b.SetRef("refs/heads/feature/x/y", main)
		b.SetRef("refs/heads/"+main, release)
		b.SetRef("refs/heads/"+strings.ToUpper(main)[:39], release)
		b.SetRef("refs/heads/--upload-pack=id", main)
		b.SetRef("refs/other/x", main)
		b.Git("tag", "-a", "-m", "m", "v1", main)
		b.Git("tag", "-a", "-m", "m", "v1t", "v1")
		names := []string{
			"release", "refs/tags/release", "20260817", "deadbeef", "feature/x/y", main, "refs/heads/" + main, strings.ToUpper(main)[:39], tagged, "v1", "v1t",
			"--upload-pack=id", "refs/other/x", "x", "elease", "feature/x", "refs/heads/v1", "refs/heads/v2",
		}
		refs, err = c.List(t.Context(), remote, names...)
		check(t, err)
		if refs.Head != "refs/heads/main" || refs.Count != 12 {
			t.Errorf("HEAD is %q, of %d refs", refs.Head, refs.Count)
		}
		for _, row := range []struct{ name, full, peeled string }{
			{"release", "refs/heads/release", release},
			{"refs/tags/release", "refs/tags/release", tagged},
			{"20260817", "refs/heads/20260817", main},
			{"deadbeef", "refs/heads/deadbeef", main},
			{"feature/x/y", "refs/heads/feature/x/y", main},
			{main, "", main},
			{"refs/heads/" + main, "refs/heads/" + main, release},
			{strings.ToUpper(main)[:39], "refs/heads/" + strings.ToUpper(main)[:39], release},
			{tagged, "", tagged},
			{"v1", "refs/tags/v1", main},
			{"v1t", "refs/tags/v1t", main},
			{"--upload-pack=id", "refs/heads/--upload-pack=id", main},
			{"refs/other/x", "refs/other/x", main},
		} {
			ref, err := refs.Resolve(row.name)
			if err != nil || ref.Name != row.full || ref.Peeled.String() != row.peeled {
				t.Errorf("%q is %+v, %v; want %s at %s", row.name, ref, err, row.full, row.peeled)
			}
		}
		for _, name := range []string{"x", "elease", "feature/x"} {
			_, err := refs.Resolve(name)
			wantError(t, err, ErrNoRef)
			if !strings.Contains(err.Error(), `"release"`) {
				t.Errorf("the message names no ref that exists: %v", err)
			}
		}
		for name, isTag := range map[string]bool{"refs/heads/v1": true, "refs/heads/v2": false} {
			_, err := refs.Resolve(name)
			wantError(t, err, ErrNoRef)
			if strings.Contains(err.Error(), "a branch is wanted") != isTag || strings.Contains(err.Error(), `"v1t"`) || !strings.Contains(err.Error(), `"main"`) {
				t.Errorf("of a branch that is missing: %v", err)
			}
		}
	})
}

func TestFetch(t *testing.T) {
	onEachKindThatReads(t, func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) {
		main := b.Grow("main", "f", "1")
		b.SetRef("refs/heads/--upload-pack=id", main)
		b.Git("tag", "-a", "-m", "m", "v1", main)
		b.Git("tag", "-a", "-m", "m", "v1t", "v1")
		blob := b.Git("rev-parse", "main:f")
		b.SetRef("refs/tags/blob", blob)
		store := gittest.NewBare(t)
		others := store.Grow("others", "f", "mine")
		request := Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{
			"refs/heads/main":             "refs/git-csi/remote/1",
			"refs/heads/--upload-pack=id": "refs/git-csi/remote/2",
			"refs/tags/v1t":               "refs/git-csi/remote/3",
			"refs/tags/blob":              "refs/git-csi/remote/4",
			"refs/heads/gone":             "refs/git-csi/remote/5",
		}}
		fetch := func() map[string]Fetched {
			t.Helper()
			fetched, err := c.Fetch(t.Context(), request)
			check(t, err)
			return fetched
		}
		fetched := fetch()
		want := map[string]Fetched{
			"refs/heads/main":             {Tip: id(t, main), Commit: id(t, main)},
			"refs/heads/--upload-pack=id": {Tip: id(t, main), Commit: id(t, main)},
			"refs/tags/v1t":               {Tip: id(t, b.Tip("refs/tags/v1t")), Commit: id(t, main)},
			"refs/tags/blob":              {Tip: id(t, blob)},
			"refs/heads/gone":             {Gone: true},
		}
		for name, one := range want {
			if fetched[name] != one {
				t.Errorf("%s: %+v, want %+v", name, fetched[name], one)
			}
		}
		// Forced upstream, and gone: the local ref follows, and stays.
		rewritten := b.Commit(map[string]string{"f": "2"})
		b.SetRef("refs/heads/main", rewritten)
		b.Git("update-ref", "-d", "refs/tags/v1t")
		fetched = fetch()
		if fetched["refs/heads/main"].Commit.String() != rewritten || !fetched["refs/tags/v1t"].Gone {
			t.Errorf("after upstream changed: %+v", fetched)
		}
		refs := store.Refs()
		if refs["refs/git-csi/remote/1"] != rewritten || refs["refs/git-csi/remote/3"] == "" ||
			refs["refs/heads/others"] != others || len(refs) != 5 {
			t.Errorf("the store's refs are %v", refs)
		}
		if files := unfinished(t, store.Dir); len(files) > 0 {
			t.Errorf("left over: %q", files)
		}
		store.Git("fsck", "--strict")
	})
}

func TestFetchShallow(t *testing.T) {
	onEachKindThatReads(t, func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) {
		for _, content := range []string{"1", "2", "3"} {
			b.Grow("main", "f", content)
		}
		for depth, want := range map[int]string{0: "3", 2: "2"} {
			store := gittest.NewBare(t)
			_, err := c.Fetch(t.Context(), Request{
				Dir: store.Dir, Remote: remote, Depth: depth, Refs: map[string]string{"refs/heads/main": "refs/x/1"},
			})
			check(t, err)
			if got := store.Git("rev-list", "--count", "refs/x/1"); got != want {
				t.Errorf("depth %d has %s commits, want %s", depth, got, want)
			}
		}
	})
}

// A remote that is shallow itself gives what it has where that is all that is wanted. Of
// anything else git says nothing with its status, and leaves the refs as they were.
func TestFetchOfAShallowRemote(t *testing.T) {
	onEachKindThatReads(t, func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) {
		store := gittest.NewBare(t)
		fetch := func(depth int) error {
			_, err := c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Depth: depth, Refs: map[string]string{"refs/heads/main": "refs/x/1", "refs/heads/side": "refs/x/2"}})
			return err
		}
		b.Grow("main", "f", "1")
		check(t, fetch(0))
		whole := gittest.NewBare(t)
		for _, content := range []string{"1", "2", "3", "4"} {
			whole.Grow("main", "f", content)
		}
		b.Git("fetch", "--depth=2", "--update-shallow", "file://"+whole.Dir, "+refs/heads/main:refs/heads/main")
		for range 2 {
			err := fetch(0)
			if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "--unshallow") {
				t.Errorf("the error is %v", err)
			}
		}
		b.SetRef("refs/heads/side", b.Tip("refs/heads/main"))
		if err := fetch(0); err == nil || !strings.Contains(err.Error(), "--unshallow") {
			t.Errorf("of a branch more the error is %v", err)
		}
		store = gittest.NewBare(t)
		check(t, fetch(1))
		if got, want := store.Tip("refs/x/1"), b.Tip("refs/heads/main"); got != want {
			t.Errorf("with a depth it is %s, want %s", got, want)
		}
		b.Git("fetch", "--unshallow", "file://"+whole.Dir)
		store = gittest.NewBare(t)
		check(t, fetch(0))
	})
}

func TestFetchCommit(t *testing.T) {
	onEachKindThatReads(t, func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) {
		old := b.Grow("main", "f", "1")
		b.Grow("main", "f", "2")
		store := gittest.NewBare(t)
		fetched, err := c.Fetch(t.Context(), Request{
			Dir: store.Dir, Remote: remote, Depth: 1, Refs: map[string]string{old: "refs/x/1"},
		})
		check(t, err)
		if fetched[old].Commit.String() != old {
			t.Errorf("%+v, want %s", fetched, old)
		}
		none := strings.Repeat("12", 20)
		_, err = c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{none: "refs/x/2"}})
		wantError(t, err, ErrNoRef)
	})
}

// TestShapeOfRefsChanges is C39 (a) on the store's side: its names are the caller's own,
// so that what upstream's names collide with is of no concern.
func TestShapeOfRefsChanges(t *testing.T) {
	on(t, quickKinds(), func(t *testing.T, c *Command, b *gittest.Bare, remote Remote) {
		store := gittest.NewBare(t)
		names := map[string]string{"refs/heads/feature": "refs/x/1", "refs/heads/feature/foo": "refs/x/2"}
		fetch := func(pack bool) map[string]Fetched {
			t.Helper()
			if pack {
				store.Git("pack-refs", "--all")
			}
			fetched, err := c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: names})
			check(t, err)
			return fetched
		}
		for _, pack := range []bool{false, true, false} {
			one := b.Commit(map[string]string{"f": "1"})
			b.SetRef("refs/heads/feature", one)
			fetched := fetch(pack)
			if fetched["refs/heads/feature"].Commit.String() != one || !fetched["refs/heads/feature/foo"].Gone {
				t.Errorf("%+v", fetched)
			}
			b.Git("update-ref", "-d", "refs/heads/feature")
			two := b.Commit(map[string]string{"f": "2"})
			b.SetRef("refs/heads/feature/foo", two)
			fetched = fetch(pack)
			if fetched["refs/heads/feature/foo"].Commit.String() != two || !fetched["refs/heads/feature"].Gone {
				t.Errorf("%+v", fetched)
			}
			b.Git("update-ref", "-d", "refs/heads/feature/foo")
		}
	})
}

func TestSHA256(t *testing.T) {
	for name, start := range kindsThatRead() {
		t.Run(name, func(t *testing.T) {
			c, b, store := newCommand(t), gittest.NewBare(t, "--object-format=sha256"), gittest.NewBare(t)
			b.Grow("main", "f", "1")
			remote := start(t, b)
			_, err := c.List(t.Context(), remote, "main")
			wantError(t, err, object.ErrSHA256)
			_, err = c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
			wantError(t, err, object.ErrSHA256)
		})
	}
}

func TestNoRepository(t *testing.T) {
	onEachKind(t, func(t *testing.T, c *Command, _ *gittest.Bare, remote Remote) {
		var err error
		remote.URL, err = attributes.ParseURL(remote.URL.String() + "x.git")
		check(t, err)
		_, err = c.List(t.Context(), remote, "main")
		wantError(t, err, ErrNoRepository)
		_, err = c.Fetch(t.Context(), Request{Dir: gittest.NewBare(t).Dir, Remote: remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
		wantError(t, err, ErrNoRepository)
	})
}
