package worktree

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// TestScansAgreeWithGit has random edits be found by a scan of everything and by one of
// what changed, which have to agree with each other and with what git would commit.
func TestScansAgreeWithGit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := newVolume(t)
		defer os.RemoveAll(filepath.Dir(v.dir))
		v.class = rapid.SampledFrom([][]string{nil, {"*.b"}, {"/cache/", "!a"}}).Draw(rt, "class")
		v.do(os.MkdirAll(v.at("a/b"), 0o755))
		v.commit()
		for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
			e := &editor{v: v}
			for range rapid.IntRange(1, 12).Draw(rt, "edits") {
				drawEdit(rt, edits())(e)
			}
			everything := v.request()
			everything.Blobs = Hasher{}
			some := everything
			some.Paths, some.Subtrees = e.paths, e.subtrees
			whole, part := v.scan(everything), v.scan(some)
			if d := difference(whole, part); d != "" {
				rt.Fatalf("everything and %q, all below %q, differ in %s", e.paths, e.subtrees, d)
			}
			// Looked at and not committed: that is no news the second time.
			everything.Seen = whole.Memory
			again := v.scan(everything)
			if d := difference(whole, again); d != "what was found" && d != "" {
				rt.Fatalf("two scans of one state differ in %s", d)
			}
			if len(again.Found) != 0 {
				rt.Fatalf("found again: %q", again.Found)
			}
			some.Blobs = v.repo
			v.adopt(v.scan(some))
			v.equalsGit()
			v.recordIsWhole(rt)
		}
	})
}

// difference says in what two results differ.
func difference(a, b *Result) string {
	remembered := func(m *Memory) map[string]Entry {
		all := maps.Collect(m.All())
		for path, e := range all {
			e.Racy = false // Time passed between the two.
			all[path] = e
		}
		return all
	}
	switch {
	case !slices.Equal(a.Changes, b.Changes):
		return "changes"
	case !maps.Equal(a.Metadata, b.Metadata):
		return "metadata"
	case !slices.Equal(a.Skipped, b.Skipped):
		return "what is skipped"
	case !slices.Equal(a.Waiting, b.Waiting):
		return "what waits"
	case !maps.Equal(remembered(a.Memory), remembered(b.Memory)):
		return "what is remembered"
	case !slices.Equal(a.Found, b.Found):
		return "what was found"
	}
	return ""
}

// recordIsWhole fails unless the metadata recorded step by step, and what is committed,
// is what a scan says that knows nothing but the commit.
func (v *volume) recordIsWhole(t interface{ Fatalf(string, ...any) }) {
	v.t.Helper()
	request := v.request()
	request.Memory, request.Blobs = v.fromCommit(), Hasher{}
	result := v.scan(request)
	if len(result.Changes) != 0 {
		t.Fatalf("nothing changed since the commit, and yet %q", changed(result))
	}
	whole, err := metadata.Record{}.Apply(result.Metadata)
	v.do(err)
	if !whole.Equal(v.record) {
		t.Fatalf("recorded %v\nwant %v", entries(v.record), entries(whole))
	}
}

// fromCommit is the memory that a commit alone gives.
func (v *volume) fromCommit() *Memory {
	var edits []Edit
	for path, e := range v.memory.All() {
		if e.Mode != 0 && e.Mode != object.Directory {
			edits = append(edits, Edit{path, Entry{Mode: e.Mode, Blob: e.Blob}})
		}
	}
	return (*Memory)(nil).With(edits)
}
