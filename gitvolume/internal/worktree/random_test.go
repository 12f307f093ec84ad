package worktree

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// editor makes random edits, as an application would, and notes what a watch would say.
type editor struct {
	v               *volume
	paths, subtrees []string
}

func (e *editor) draw(t *rapid.T) {
	names := []string{"a", "b", "a.b", "a0", "x y", "\xff", "new\nline", "-d", "cache", "A"}
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, "names"), "/")
	})
	one := path.Draw(t, "path")
	rulesIn := rapid.SampledFrom([]string{".", "a", "b", "a/b", "cache"}).Draw(t, "directory")
	rules := join(rulesIn, ".gitignore")
	if !e.plain(one) || !e.plain(rules) {
		return
	}
	switch rapid.SampledFrom([]string{"write", "write", "write", "append", "chmod", "link", "mkdir", "remove", "rename", "rename", "rules", "no rules", "touch", "chown"}).Draw(t, "edit") {
	case "write":
		e.make(one, func(at string) error {
			return os.WriteFile(at, rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "content"), 0o644)
		})
	case "append":
		if file, err := os.OpenFile(e.v.at(one), os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0); err == nil {
			_, err = file.WriteString("+")
			e.v.do(err)
			e.v.do(file.Close())
			e.paths = append(e.paths, one)
		}
	case "chmod":
		mode := rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o600, 0o744, 0o654, 0, 0o777 | os.ModeSetgid | os.ModeSticky}).Draw(t, "mode")
		if stat, err := os.Lstat(e.v.at(one)); err == nil && stat.Mode()&os.ModeSymlink == 0 && os.Chmod(e.v.at(one), mode) == nil {
			e.paths = append(e.paths, one)
		}
	case "chown":
		id := rapid.IntRange(0, 2).Draw(t, "owner")
		if os.Getuid() == 0 && os.Lchown(e.v.at(one), id, id) == nil {
			e.paths = append(e.paths, one)
		}
	case "link":
		target := rapid.SampledFrom(append(names, "../..", "/", ".")).Draw(t, "target")
		e.make(one, func(at string) error { return os.Symlink(target, at) })
	case "mkdir":
		e.make(one, func(at string) error { return os.Mkdir(at, 0o755) })
	case "remove":
		e.remove(one)
	case "rename":
		other := path.Draw(t, "to")
		if !e.plain(other) {
			return
		}
		e.make(other, func(at string) error { return os.Rename(e.v.at(one), at) })
		e.note(one, false)
	case "rules":
		patterns := []string{"*.b", "a", "/a", "b/", "!a", "x y", "**/a", "cache/", "*", "!*/", "\xff", "a/*", "!a/b", "/b/a"}
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(patterns), 0, 3).Draw(t, "patterns"), "\n")
		if os.WriteFile(e.v.at(rules), []byte(text), 0o644) == nil {
			e.paths = append(e.paths, rules)
		}
	case "no rules":
		if os.Remove(e.v.at(rules)) == nil {
			e.paths = append(e.paths, rules)
		}
	case "touch":
		if stat, err := os.Lstat(e.v.at(one)); err == nil && stat.Mode()&os.ModeSymlink == 0 && os.Chtimes(e.v.at(one), e2t(1), e2t(1)) == nil {
			e.paths = append(e.paths, one)
		}
	}
}

// plain tells whether the way to a path leads over no link.
func (e *editor) plain(path string) bool {
	for dir, _ := split(path); dir != "."; dir, _ = split(dir) {
		if stat, err := os.Lstat(e.v.at(dir)); err == nil && !stat.IsDir() {
			return false
		}
	}
	return true
}

// make makes something at a path and whatever directories that takes.
func (e *editor) make(path string, do func(at string) error) {
	if !e.plain(path) {
		return
	}
	for end := strings.IndexByte(path, '/'); end >= 0; {
		if dir := path[:end]; os.Mkdir(e.v.at(dir), 0o755) == nil {
			e.subtrees = append(e.subtrees, dir)
		}
		next := strings.IndexByte(path[end+1:], '/')
		if next < 0 {
			break
		}
		end += 1 + next
	}
	if stat, err := os.Lstat(e.v.at(path)); err == nil && stat.Mode()&os.ModeSymlink != 0 {
		e.v.do(os.Remove(e.v.at(path))) // Not to be written through.
		e.note(path, false)
	}
	if do(e.v.at(path)) == nil {
		e.note(path, true)
	}
}

func (e *editor) remove(path string) {
	stat, err := os.Lstat(e.v.at(path))
	if err != nil {
		return
	}
	e.v.do(os.RemoveAll(e.v.at(path)))
	e.note(path, stat.IsDir())
}

// note notes what an event would say of a path.
func (e *editor) note(path string, made bool) {
	if stat, err := os.Lstat(e.v.at(path)); !made || err == nil && stat.IsDir() {
		e.subtrees = append(e.subtrees, path)
	}
	e.paths = append(e.paths, path)
}

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
				e.draw(rt)
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
