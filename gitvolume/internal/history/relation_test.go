package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

// dated adds a commit of a date.
func dated(r *Repository, unix int64, parents ...object.ID) object.ID {
	who := Signature{Name: "a", When: time.Unix(unix, 0).UTC()}
	return must(r.Commit(Draft{Parents: parents, Author: who, Committer: who, Message: fmt.Sprint(unix)}))
}

// TestBackwards has commits that are older than what they follow (C40 (e)).
func TestBackwards(t *testing.T) {
	r, _ := newRepository(t)
	root := dated(r, 2000000000)
	base := dated(r, 1000000000, root)
	upstream := dated(r, 1000000050, base)
	pod := dated(r, 1000000100, base)
	old := dated(r, 1, pod)
	if got, err := r.MergeBase(upstream, old); err != nil || got != base {
		t.Errorf("the merge base is %s, %v, want %s", got, err, base)
	}
	for _, row := range []struct {
		tip, commit object.ID
		want        bool
	}{{old, root, true}, {old, pod, true}, {old, old, true}, {old, upstream, false}, {root, old, false}, {upstream, root, true}, {pod, old, false}} {
		if got, err := r.Contains(row.tip, row.commit); err != nil || got != row.want {
			t.Errorf("%s contains %s: %v, %v", row.tip, row.commit, got, err)
		}
	}
	if got, err := r.Own(base, old); err != nil || !slices.Equal(got, []object.ID{pod, old}) {
		t.Errorf("its own are %s, %v", got, err)
	}
}

// TestRelationsAgainstGit draws histories with merges and dates in any order.
func TestRelationsAgainstGit(t *testing.T) {
	t.Parallel()
	r, peer := newRepository(t)
	rapid.Check(t, func(t *rapid.T) {
		var commits []object.ID
		for i := range rapid.IntRange(2, 12).Draw(t, "commits") {
			parents := []object.ID{}
			if i > 0 {
				for range rapid.IntRange(0, 3).Draw(t, "parents") {
					if parent := rapid.SampledFrom(commits).Draw(t, "parent"); !slices.Contains(parents, parent) {
						parents = append(parents, parent)
					}
				}
			}
			commits = append(commits, dated(r, int64(rapid.IntRange(1, 2000000000).Draw(t, "date")), parents...))
		}
		a, b := rapid.SampledFrom(commits).Draw(t, "a"), rapid.SampledFrom(commits).Draw(t, "b")
		base, err := r.MergeBase(a, b)
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if err != nil && !errors.Is(err, ErrUnrelated) {
			t.Fatal(err)
		}
		all, _ := peer.try("", "merge-base", "--all", a.String(), b.String())
		if bases := strings.Fields(all); (err != nil) != (len(bases) == 0) || err == nil && !slices.Contains(bases, base.String()) {
			t.Errorf("the merge base is %s, %v; git finds %s", base, err, bases)
		}
		_, failed := peer.try("", "merge-base", "--is-ancestor", b.String(), a.String())
		if contains, err := r.Contains(a, b); err != nil || contains != (failed == nil) {
			t.Errorf("%s contains %s: %v, %v", a, b, contains, err)
		}
		own, err := r.Own(b, a)
		want := strings.Fields(peer.run("rev-list", "--first-parent", "--topo-order", "--reverse", a.String()))
		at := slices.Index(want, b.String())
		if got := fmt.Sprint(own); (err != nil) != (at < 0) || at >= 0 && got != fmt.Sprint(want[at+1:]) {
			t.Errorf("its own are %s, %v, want those after %d of %s", got, err, at, want)
		}
		if own, err := r.Own(object.ID{}, a); err != nil || fmt.Sprint(own) != fmt.Sprint(want) {
			t.Errorf("all its own are %s, %v, want %s", own, err, want)
		}
	})
}

func TestRelationsOfOthers(t *testing.T) {
	r, _ := newRepository(t)
	id, other := dated(r, 1), dated(r, 2)
	tree := must(r.CommitTree(id))
	missing := parse(t, strings.Repeat("12", 20))
	if _, err := r.MergeBase(id, other); !errors.Is(err, ErrUnrelated) {
		t.Errorf("two roots: %v", err)
	}
	for name, row := range map[string]struct {
		id   object.ID
		want error
	}{"a tree": {tree, ErrNotCommit}, "missing": {missing, ErrMissing}} {
		_, base := r.MergeBase(id, row.id)
		_, contains := r.Contains(row.id, id)
		_, own := r.Own(id, row.id)
		for _, err := range []error{base, contains, own} {
			if !errors.Is(err, row.want) {
				t.Errorf("%s: %v, want %v", name, err, row.want)
			}
		}
	}
}
