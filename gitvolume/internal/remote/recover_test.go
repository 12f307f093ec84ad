package remote

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/history"
)

// TestRecover is C43 (b) for what git leaves.
func TestRecover(t *testing.T) {
	c, b, store := newCommand(t), gittest.NewBare(t), gittest.NewBare(t)
	tip := b.Grow("main", "f", "1")
	store.Grow("main", "f", "mine")
	for _, name := range []string{
		"HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "refs/heads/main.lock", "refs/x/1.lock", "gc.pid",
		"objects/pack/tmp_pack_x", "objects/pack/tmp_idx_x", "objects/ab/tmp_obj_x",
		attributesPrefix + "1/d/.gitattributes",
	} {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(store.Dir, name)), 0o755))
		check(t, os.WriteFile(filepath.Join(store.Dir, name), []byte("1 elsewhere"), 0o444))
	}
	for name, content := range map[string]string{"objects/pack/pack-x.keep": "fetch-pack 17 on node", "shallow_x8ka91": ""} {
		check(t, os.WriteFile(filepath.Join(store.Dir, name), []byte(content), 0o600))
	}
	check(t, c.Recover(t.Context(), store.Dir))
	if left := unfinished(t, store.Dir); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
	fetched, err := c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: local(t, b), Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
	check(t, err)
	if fetched["refs/heads/main"].Commit.String() != tip {
		t.Errorf("%+v", fetched)
	}
}

// TestFailedFetchSparesOthers has a fetch fail while a volume writes to the repository
// and git merges in it.
func TestFailedFetchSparesOthers(t *testing.T) {
	c := newCommand(t)
	dir := filepath.Join(t.TempDir(), "store")
	check(t, history.Create(dir))
	r, err := history.Open(dir)
	check(t, err)
	defer r.Close()
	const half = 3 << 20 // A blob of two of them is not kept in memory.
	begun, rest := make(chan struct{}), make(chan struct{})
	written := make(chan error, 1)
	go func() {
		blob, err := r.BlobFrom(io.MultiReader(strings.NewReader(strings.Repeat("x", half)), waiting{begun, rest}, strings.NewReader(strings.Repeat("y", half))), 2*half)
		if err == nil {
			_, err = r.Content(blob)
		}
		written <- errors.Join(err, r.Flush())
	}()
	<-begun
	objects := filepath.Join(dir, "objects")
	check(t, os.WriteFile(filepath.Join(objects, "pack/pack-y.keep"), []byte("fetch-pack 17 on node"), 0o600))
	spared := []string{"pack/tmp_history_1", "pack/pack_git2_x", "ab/tmp_obj_x", "pack/pack-x.keep"}
	left := []string{"pack/tmp_pack_x", "pack/tmp_idx_x", "ab/tmp_obj_old"}
	for _, name := range slices.Concat(spared, left) {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(objects, name)), 0o700))
		check(t, os.WriteFile(filepath.Join(objects, name), nil, 0o400))
	}
	check(t, os.Chtimes(filepath.Join(objects, "ab/tmp_obj_old"), time.Time{}, time.Now().Add(-abandonedAge)))
	_, err = c.Fetch(t.Context(), Request{Dir: dir, Remote: at(t, "http://"+gittest.Closed(t)+"/r"), Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
	wantError(t, err, ErrUnreachable)
	close(rest)
	check(t, <-written)
	for _, name := range spared {
		if _, err := os.Stat(filepath.Join(objects, name)); err != nil {
			t.Errorf("what somebody else writes is gone: %v", err)
		}
	}
	for _, name := range append(left, "pack/pack-y.keep") {
		if _, err := os.Stat(filepath.Join(objects, name)); err == nil {
			t.Errorf("what nobody writes any more is still there: %s", name)
		}
	}
}

// waiting yields nothing: it tells that it was read and waits for the rest.
type waiting struct {
	begun chan<- struct{}
	rest  <-chan struct{}
}

func (w waiting) Read([]byte) (int, error) {
	close(w.begun)
	<-w.rest
	return 0, io.EOF
}

func TestGC(t *testing.T) {
	c, store := newCommand(t), gittest.NewBare(t)
	for _, content := range strings.Split("abcdefghij", "") {
		store.Grow("main", "f", content)
	}
	tip := store.Grow("main", "f", "last")
	store.SetRef("refs/git-csi/x", store.Commit(map[string]string{"g": "hidden"}))
	young := store.Commit(map[string]string{"h": "of no ref yet"})
	old := store.Commit(map[string]string{"i": "of no ref any more"})
	past := time.Now().Add(-48 * time.Hour)
	check(t, os.Chtimes(filepath.Join(store.Dir, "objects", old[:2], old[2:]), past, past))
	// As a gc that was killed leaves it, with a number that somebody else has now.
	host, err := os.Hostname()
	check(t, err)
	check(t, os.WriteFile(filepath.Join(store.Dir, "gc.pid"), []byte("1 "+host), 0o600))
	check(t, c.GC(t.Context(), store.Dir))
	for _, kept := range []string{tip, young, "refs/git-csi/x"} {
		store.Git("cat-file", "-e", kept)
	}
	if _, err := store.TryGit("cat-file", "-e", old); err == nil {
		t.Error("an old object that no ref reaches is still there")
	}
	packs, _ := filepath.Glob(filepath.Join(store.Dir, "objects/pack/*.pack"))
	if len(packs) != 1 {
		t.Errorf("there are %d packs", len(packs))
	}
	// Who deletes or makes a ref by libgit2 meanwhile would lose it to packed-refs.
	if _, err := os.Stat(filepath.Join(store.Dir, "packed-refs")); err == nil {
		t.Error("the refs are packed")
	}
	if _, err := os.Stat(filepath.Join(store.Dir, "refs/git-csi/x")); err != nil {
		t.Errorf("a ref is not loose: %v", err)
	}
	store.Git("fsck", "--strict")
}

// TestFailedGCLeavesNothing has a gc end in the middle of a pack.
func TestFailedGCLeavesNothing(t *testing.T) {
	store := gittest.NewBare(t)
	c := newCommand(t, withGit(t, `cd "$GIT_DIR/objects/pack" && touch tmp_pack_x .tmp-1-pack-x.pack tmp_history_x; exit 128`))
	wantError(t, c.GC(t.Context(), store.Dir), ErrFailed)
	left := unfinished(t, store.Dir)
	if len(left) != 1 || filepath.Base(left[0]) != "tmp_history_x" {
		t.Errorf("left over: %q", left)
	}
}

// TestFetchAndGCTakeTurns: what one of them left behind would else be taken for the
// other's.
func TestFetchAndGCTakeTurns(t *testing.T) {
	c, b, store := newCommand(t), gittest.NewBare(t), gittest.NewBare(t)
	remote := local(t, b)
	ended := make(chan error, 1)
	go func() {
		for range 5 {
			if err := c.GC(t.Context(), store.Dir); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for i := range 5 {
		tip := b.Grow("main", "f", strings.Repeat("x", i))
		fetched, err := c.Fetch(t.Context(), Request{Dir: store.Dir, Remote: remote, Refs: map[string]string{"refs/heads/main": "refs/x/1"}})
		check(t, err)
		if fetched["refs/heads/main"].Commit.String() != tip {
			t.Errorf("%+v", fetched)
		}
	}
	check(t, <-ended)
	store.Git("fsck", "--strict")
}
