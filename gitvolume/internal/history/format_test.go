package history

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// TestObjectFormat is given a repository with ids of SHA-256: it is refused, and stays
// as it is.
func TestObjectFormat(t *testing.T) {
	peer := newPeer(t, t.TempDir())
	peer.run("init", "-q", "--bare", "--object-format=sha256", ".")
	commit := peer.run("commit-tree", "-m", "x", peer.feed("", "mktree"))
	peer.run("update-ref", "refs/heads/main", commit)
	before := must(os.ReadFile(filepath.Join(peer.dir, "config")))
	for what, err := range map[string]error{
		"Create":  Create(peer.dir),
		"Open":    failure(Open(peer.dir)),
		"Recover": failure(Recover(peer.dir)),
	} {
		if !errors.Is(err, ErrObjectFormat) || !strings.Contains(err.Error(), "sha256") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if after := must(os.ReadFile(filepath.Join(peer.dir, "config"))); string(after) != string(before) || peer.run("rev-parse", "main") != commit {
		t.Errorf("it was changed: the configuration is %q", after)
	}
	peer.fsck()
}

// TestShallow is given a repository of the last three of five commits. All that is there
// can be used, and no answer is a guess at what is not.
func TestShallow(t *testing.T) {
	source, sourcePeer := newRepository(t)
	line := []object.ID{dated(source, 1)}
	for n := range int64(4) {
		line = append(line, dated(source, n+2, line[n]))
	}
	if err := source.SetRef("refs/heads/main", line[4], object.ID{}); err != nil {
		t.Fatal(err)
	}
	sourcePeer.fsck()
	r, peer := newRepository(t)
	peer.run("fetch", "-q", "--depth=3", "file://"+source.dir, "refs/heads/main:refs/heads/main")
	other := dated(r, 7, line[2])
	own := dated(r, 9, dated(r, 8, line[3]))
	if err := r.SetRef("refs/heads/own", own, object.ID{}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		tip, commit object.ID
		want        bool
		err         error
	}{
		{line[4], line[2], true, nil}, {line[2], line[2], true, nil}, {own, line[3], true, nil}, {line[4], own, false, nil},
		{other, own, false, nil}, {line[4], dated(r, 10), false, ErrShallow}, {line[4], line[0], false, ErrMissing},
	} {
		if got, err := r.Contains(row.tip, row.commit); got != row.want || !errors.Is(err, row.err) {
			t.Errorf("%s contains %s: %t, %v, want %t, %v", row.tip, row.commit, got, err, row.want, row.err)
		}
	}
	if got, err := r.MergeBase(own, line[4]); err != nil || got != line[3] {
		t.Errorf("the merge base is %s, %v, want %s", got, err, line[3])
	}
	if got, err := r.MergeBase(own, dated(r, 10)); !errors.Is(err, ErrShallow) {
		t.Errorf("the merge base with a history of its own is %s, %v", got, err)
	}
	if got, err := r.Own(line[2], own); err != nil || len(got) != 3 {
		t.Errorf("its own are %s, %v", got, err)
	}
	if got, err := r.Own(object.ID{}, own); !errors.Is(err, ErrShallow) {
		t.Errorf("all its own are %s, %v", got, err)
	}
	done, err := r.Rebase(t.Context(), Replay{Base: line[3], Tip: own, Onto: line[4], Committer: someone()})
	if err != nil || done.Replayed != 2 {
		t.Errorf("rebased %+v, %v", done, err)
	}
	if refs, err := Recover(r.dir); err != nil || !slices.Equal(refs.Refs, nil) {
		t.Errorf("recovered %+v, %v", refs, err)
	}
	peer.fsck()
}
