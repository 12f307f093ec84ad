package worktree

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

// onTmpfs has the temporary directories of the test in memory, where that can be: a test
// of many moves need not wait for a disk with each of them.
func onTmpfs(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "worktree") //nolint:usetesting // The test's own directory is to be in it.
	if err != nil {
		t.Fatal(err)
	}
	mounted := os.Getenv("LIKEN_TEST_NO_MOUNT_NAMESPACE") == "" && unix.Mount("none", dir, "tmpfs", 0, "") == nil
	t.Cleanup(func() {
		if mounted {
			_ = unix.Unmount(dir, unix.MNT_DETACH)
		}
		_ = os.Remove(dir)
	})
	t.Setenv("TMPDIR", dir)
}

// clean is a path of upstream without what says its kind.
func clean(path string) string { return strings.TrimRight(path, "@*%") }

// meets tells whether two paths are equal, or one is a directory on the way to the other.
func meets(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// put puts a file at a path, in place of what is in its way.
func (files upstream) put(path, content string) {
	maps.DeleteFunc(files, func(other, _ string) bool { return meets(clean(path), clean(other)) })
	files[path] = content
}

func drawPath(t *rapid.T) string {
	names := rapid.SampledFrom([]string{"a", "b", "c", "a-b", "\xff\n"})
	parts := rapid.SliceOfN(names, 1, 3).Draw(t, "path")
	return strings.Join(parts, "/") + rapid.SampledFrom([]string{"", "", "*", "@"}).Draw(t, "kind")
}

// drawCommit is another commit after one.
func drawCommit(t *rapid.T, before upstream) upstream {
	files := maps.Clone(before)
	for range rapid.IntRange(0, 6).Draw(t, "edits") {
		path := drawPath(t)
		if rapid.Bool().Draw(t, "removed") {
			maps.DeleteFunc(files, func(other, _ string) bool { return meets(clean(path), clean(other)) })
			continue
		}
		files.put(path, rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "content"))
	}
	return files
}

// checkedOut is what git makes of a tree.
func (v *volume) checkedOut(tree object.ID) map[string]string {
	v.t.Helper()
	other := *v
	other.dir = filepath.Join(v.t.TempDir(), "peer")
	mkdirs(v.t, other.dir)
	other.git = append(slices.Clone(v.git), "GIT_WORK_TREE="+other.dir, "GIT_INDEX_FILE="+other.dir+".index")
	if !tree.IsZero() {
		other.run("read-tree", tree.String())
		other.run("checkout-index", "-a", "-f")
	}
	return other.onDisk()
}

// randomMoves is a volume that is moved and written at random.
type randomMoves struct {
	*volume
	editedBefore bool // At some time: the tree may have empty directories.
	wrote        bool // Since the last commit, be it what was there.
}

// edit is the application at work. It gives the paths that are not as they were.
func (v *randomMoves) edit(t *rapid.T) []string {
	before := v.onDisk()
	writes := rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "writes")
	v.wrote = writes > 0
	for range writes {
		path := v.at(clean(drawPath(t)))
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			v.do(ignoreMissing(os.RemoveAll(path)))
		case 1:
			v.do(ignoreMissing(os.RemoveAll(path)))
			if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
				v.do(ignoreMissing(os.Symlink("mine", path)))
			}
		default:
			if os.MkdirAll(filepath.Dir(path), 0o755) == nil {
				_ = os.WriteFile(path, []byte("mine"), 0o644) // Over a directory it fails, through a link it may.
			}
		}
	}
	after := v.onDisk()
	var changed []string
	for _, both := range []map[string]string{before, after} {
		for path := range both {
			if before[path] != after[path] || len(before) == 0 || has(before, path) != has(after, path) {
				changed = append(changed, strings.TrimSuffix(clean(path), "/"))
			}
		}
	}
	return changed
}

func has(m map[string]string, key string) bool { _, is := m[key]; return is }

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	return err
}

// differing are the paths where two commits differ.
func differing(from, to upstream) []string {
	var paths []string
	for _, both := range []upstream{from, to} {
		for path := range both {
			if from[path] != to[path] || has(from, path) != has(to, path) {
				paths = append(paths, clean(path))
			}
		}
	}
	return paths
}

// TestMoveBetweenRandomCommits compares with git where the application did nothing, and
// with what is said of its writes where it did something.
func TestMoveBetweenRandomCommits(t *testing.T) {
	onTmpfs(t)
	v := &randomMoves{volume: newVolume(t)}
	rapid.Check(t, func(rt *rapid.T) {
		v.t = failing{t, rt}
		v.do(v.tree.Close())
		v.do(os.RemoveAll(v.dir))
		v.do(os.Mkdir(v.dir, 0o777))
		v.tree = must(Open(v.dir))
		v.root, v.memory, v.editedBefore = object.ID{}, nil, false
		from := upstream{}
		for range rapid.IntRange(1, 4).Draw(rt, "moves") {
			to := drawCommit(rt, from)
			edited := v.edit(rt)
			v.editedBefore = v.editedBefore || len(edited) > 0
			v.moveRandomly(from, to, edited)
			// The next one starts from what is committed.
			v.commit()
			v.equalsGit()
			from = v.committed()
		}
	})
}

// failing fails the draw, not the test.
type failing struct {
	testing.TB
	rt *rapid.T
}

func (f failing) Logf(format string, args ...any)   { f.rt.Logf(format, args...) }
func (f failing) Failed() bool                      { return f.rt.Failed() }
func (f failing) Fatal(args ...any)                 { f.rt.Fatal(args...) }
func (f failing) Fatalf(format string, args ...any) { f.rt.Fatalf(format, args...) }
func (f failing) Error(args ...any)                 { f.rt.Error(args...) }
func (f failing) Errorf(format string, args ...any) { f.rt.Errorf(format, args...) }

// committed is what the volume's commit holds.
func (v *volume) committed() upstream {
	v.t.Helper()
	files := upstream{}
	if v.root.IsZero() {
		return files
	}
	for _, d := range must(v.repo.Diff(object.ID{}, v.root)) {
		path := d.Path
		switch d.To.Mode {
		case object.Executable:
			path += "*"
		case object.Symlink:
			path += "@"
		}
		files[path] = string(must(v.repo.Content(d.To.ID)))
	}
	return files
}

func (v *randomMoves) moveRandomly(from, to upstream, edited []string) {
	v.t.Helper()
	before := v.onDisk()
	tree := v.treeOf(to)
	moved := v.move(tree)
	after := v.onDisk()
	v.t.Logf("from\n%q\nto\n%q\nbefore\n%q\nafter\n%q\nedited %q", from, to, before, after, edited)
	differ := differing(from, to)
	met := func(path string, others []string) bool {
		return slices.ContainsFunc(others, func(other string) bool { return meets(path, other) })
	}
	if len(moved.Late) > 0 {
		v.t.Errorf("late %q", moved.Late)
	}
	if len(moved.Conflicts) > 0 {
		if !maps.Equal(before, after) {
			v.t.Errorf("conflicts %q, and the tree was changed from\n%q\nto\n%q", moved.Conflicts, before, after)
		}
		for _, path := range moved.Conflicts {
			// A directory that the application emptied in an earlier round is its own.
			emptied := v.editedBefore && has(before, path+"/")
			if !met(path, edited) && !emptied || !met(path, differ) {
				v.t.Errorf("a conflict at %q, edited %q, upstream %q", path, edited, differ)
			}
		}
		return
	}
	if len(edited) == 0 {
		peer := v.checkedOut(tree)
		if v.editedBefore {
			// Of directories that the application emptied git knows nothing.
			maps.DeleteFunc(after, func(path, _ string) bool { return strings.HasSuffix(path, "/") && !has(peer, path) })
		}
		if !maps.Equal(after, peer) {
			v.t.Errorf("the tree has\n%q\ngit checks out\n%q", after, peer)
		}
		if !v.wrote {
			v.silent()
		}
		return
	}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(after)), slices.Collect(maps.Keys(to))) {
		bare := strings.TrimSuffix(clean(path), "/")
		switch {
		case !met(bare, edited):
			if want, is := to[path]; !strings.HasSuffix(path, "/") && (has(after, path) != is || after[path] != want) {
				v.t.Errorf("%q is not what upstream has: %q, %v", path, after[path], has(after, path))
			}
		case !slices.ContainsFunc(differ, func(other string) bool { return meets(bare, other) }):
			if before[path] != after[path] || has(before, path) != has(after, path) {
				v.t.Errorf("%q was the application's: %q, now %q", path, before[path], after[path])
			}
		case before[path] == "mine" && after[path] != "mine":
			v.t.Errorf("%q, which the application wrote, is lost", path)
		}
	}
}
