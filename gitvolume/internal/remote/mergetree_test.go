package remote

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/csitest/mountns"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// commitOf makes a commit of files by path.
func commitOf(t *testing.T, b *gittest.Bare, files map[string]string, parents ...object.ID) object.ID {
	t.Helper()
	var names []string
	for _, parent := range parents {
		names = append(names, parent.String())
	}
	return id(t, b.Commit(files, names...))
}

// manyLines is twelve lines, of which some are others.
func manyLines(others ...string) string {
	lines := strings.Split("1 2 3 4 5 6 7 8 9 10 11 12", " ")
	for i := 0; i < len(others); i += 2 {
		lines[slices.Index(lines, others[i])] = others[i+1]
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestMergeTrees(t *testing.T) {
	type files = map[string]string
	union := map[string][]byte{"d/.gitattributes": []byte("f merge=union\n")}
	for name, row := range map[string]struct {
		base, ours, theirs files
		attributes         map[string][]byte
		want               files
		conflicts          []string
	}{
		"two lines": {
			base: files{"a": manyLines()}, ours: files{"a": manyLines("1", "one")}, theirs: files{"a": manyLines("12", "twelve")},
			want: files{"a": manyLines("1", "one", "12", "twelve")},
		},
		"a renamed file": {
			base: files{"a": manyLines()}, ours: files{"b": manyLines()}, theirs: files{"a": manyLines("6", "six")},
			want: files{"b": manyLines("6", "six")},
		},
		"a renamed directory is not looked for": {
			base:   files{"d/a": manyLines(), "d/b": manyLines("1", "one")},
			ours:   files{"e/a": manyLines(), "e/b": manyLines("1", "one")},
			theirs: files{"d/a": manyLines("6", "six"), "d/b": manyLines("1", "one"), "d/new": "new"},
			want:   files{"e/a": manyLines("6", "six"), "e/b": manyLines("1", "one"), "d/new": "new"},
		},
		"conflicts": {
			base:      files{"a": "0\n", "b\nb": "0\n", "c": "0\n"},
			ours:      files{"a": "1\n", "b\nb": "1\n", "c": "0\n"},
			theirs:    files{"a": "2\n", "b\nb": "2\n", "c": "2\n"},
			conflicts: []string{"a", "b\nb"},
		},
		"attributes that keep lines of both": {
			base: files{"d/f": "0\n"}, ours: files{"d/f": "1\n"}, theirs: files{"d/f": "2\n"}, attributes: union,
			want: files{"d/f": "1\n2\n"},
		},
		"attributes of another directory": {
			base: files{"e/f": "0\n"}, ours: files{"e/f": "1\n"}, theirs: files{"e/f": "2\n"}, attributes: union,
			conflicts: []string{"e/f"},
		},
		"attributes that the commits have do not count": {
			base:      files{"f": "0\n", ".gitattributes": "* merge=union\n"},
			ours:      files{"f": "1\n", ".gitattributes": "* merge=union\n"},
			theirs:    files{"f": "2\n", ".gitattributes": "* merge=union\n"},
			conflicts: []string{"f"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, c := gittest.NewBare(t), newCommand(t)
			base := commitOf(t, b, row.base)
			ours, theirs := commitOf(t, b, row.ours, base), commitOf(t, b, row.theirs, base)
			tree, conflicts, err := c.Merger(b.Dir).MergeTrees(t.Context(), ours, theirs, row.attributes)
			check(t, err)
			if !slices.Equal(conflicts, row.conflicts) {
				t.Fatalf("the conflicts are %q, want %q", conflicts, row.conflicts)
			}
			if len(conflicts) > 0 {
				if !tree.IsZero() {
					t.Errorf("there is the tree %s beside conflicts", tree)
				}
			} else if want := b.Git("rev-parse", commitOf(t, b, row.want).String()+"^{tree}"); tree.String() != want {
				t.Errorf("the tree is\n%s\nwant\n%s", b.Git("ls-tree", "-r", tree.String()), b.Git("ls-tree", "-r", want))
			}
			leftNoAttributes(t, b.Dir)
		})
	}
}

// TestMergeTreesWithAttributesTooDeep has attributes where no disk has a path.
func TestMergeTreesWithAttributesTooDeep(t *testing.T) {
	b, c := gittest.NewBare(t), newCommand(t)
	base := commitOf(t, b, map[string]string{"a": "0\n"})
	name := strings.Repeat("x", 256) + "/.gitattributes"
	deep := strings.Repeat("d/", 2100) + ".gitattributes"
	tree, conflicts, err := c.Merger(b.Dir).MergeTrees(t.Context(), base, base, map[string][]byte{name: nil, "d/.gitattributes": nil, deep: nil})
	check(t, err)
	if !tree.IsZero() || !slices.Equal(conflicts, []string{deep, name}) {
		t.Errorf("the tree is %s, the conflicts are %q", tree, conflicts)
	}
	leftNoAttributes(t, b.Dir)
}

// leftNoAttributes wants no directory with attributes to be there.
func leftNoAttributes(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, attributesPrefix+"*"))
	check(t, err)
	if len(left) > 0 {
		t.Errorf("there are %q", left)
	}
}

func TestMergeTreesFails(t *testing.T) {
	b, c := gittest.NewBare(t), newCommand(t)
	base := commitOf(t, b, map[string]string{"a": "0\n"})
	ours, theirs := commitOf(t, b, map[string]string{"a": "1\n"}, base), commitOf(t, b, map[string]string{"a": "2\n"}, base)
	missing := id(t, strings.Repeat("12", 20))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, row := range map[string]struct {
		ctx    context.Context
		dir    string
		theirs object.ID
		path   string
		want   error
	}{
		"a commit that is not there":     {t.Context(), b.Dir, missing, "a/.gitattributes", ErrFailed},
		"a repository that is not there": {t.Context(), b.Dir + "x", theirs, "a/.gitattributes", fs.ErrNotExist},
		"nobody waits":                   {gone, b.Dir, theirs, "a/.gitattributes", context.Canceled},
		"attributes outside":             {t.Context(), b.Dir, theirs, "../.gitattributes", nil},
		"attributes elsewhere":           {t.Context(), b.Dir, theirs, "/.gitattributes", nil},
	} {
		t.Run(name, func(t *testing.T) {
			tree, conflicts, err := c.Merger(row.dir).MergeTrees(row.ctx, ours, row.theirs, map[string][]byte{row.path: nil})
			if err == nil || row.want != nil && !errors.Is(err, row.want) || len(conflicts) > 0 || !tree.IsZero() {
				t.Errorf("%s, %q, %v, want an error that is %v", tree, conflicts, err, row.want)
			}
			if err != nil && errors.Is(row.want, ErrFailed) && !strings.Contains(err.Error(), ": run git merge-tree: ") {
				t.Errorf("the error does not say what was run: %v", err)
			}
			leftNoAttributes(t, b.Dir)
		})
	}
}

// TestMergeTreesOnAFullDisk: the error is the same each time, as it becomes an Event. The
// directory that all volumes share is as it was.
func TestMergeTreesOnAFullDisk(t *testing.T) {
	mountns.Require(t)
	b, c := gittest.NewBare(t), newCommand(t)
	base := commitOf(t, b, map[string]string{"a": "0\n"})
	b.SetRef("refs/heads/main", base.String())
	dir := t.TempDir()
	check(t, unix.Mount("none", dir, "tmpfs", 0, "size=1m,mode=700"))
	t.Cleanup(func() { check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	check(t, history.Create(dir))
	b.Git("push", "-q", dir, "main")
	attributes := map[string][]byte{}
	for i := range 400 {
		attributes[strconv.Itoa(i)+"/.gitattributes"] = make([]byte, 4<<10)
	}
	before, err := os.ReadDir(c.settings.Directory)
	check(t, err)
	const want = ": write the attributes: no space left on device"
	for range 2 {
		_, conflicts, err := c.Merger(dir).MergeTrees(t.Context(), base, base, attributes)
		if !errors.Is(err, unix.ENOSPC) || !strings.HasSuffix(err.Error(), want) || len(conflicts) > 0 {
			t.Errorf("%v, %q, want %q", err, conflicts, want)
		}
		leftNoAttributes(t, dir)
	}
	_, _, err = c.Merger(dir).MergeTrees(t.Context(), base, base, map[string][]byte{".gitattributes": nil})
	check(t, err)
	if after, err := os.ReadDir(c.settings.Directory); err != nil || len(after) != len(before) {
		t.Errorf("there are %v, %v, before it were %v", after, err, before)
	}
}

// TestRunWithoutADirectory: the name that it would have had is not in the error.
func TestRunWithoutADirectory(t *testing.T) {
	c := newCommand(t)
	check(t, os.Remove(c.runs))
	_, err := c.List(t.Context(), local(t, gittest.NewBare(t)), "main")
	if err == nil || !strings.HasSuffix(err.Error(), "make a directory for the run: no such file or directory") {
		t.Error(err)
	}
	check(t, os.Mkdir(c.runs, 0o700))
}

// TestMergerRebases has a rebase ask git, in a repository of the store: the attributes
// are those of upstream's tree, and what git writes is found at once.
func TestMergerRebases(t *testing.T) {
	b, c := gittest.NewBare(t), newCommand(t)
	dir := filepath.Join(t.TempDir(), "store")
	check(t, history.Create(dir))
	r, err := history.Open(dir)
	check(t, err)
	defer r.Close()
	const attributes = "f merge=union\n"
	base := commitOf(t, b, map[string]string{"d/.gitattributes": attributes, "d/f": manyLines(), "a": manyLines()})
	onto := commitOf(t, b, map[string]string{"d/.gitattributes": attributes, "d/f": manyLines("1", "theirs"), "b": manyLines()}, base)
	tip := commitOf(t, b, map[string]string{"d/.gitattributes": attributes, "d/f": manyLines("1", "ours"), "a": manyLines("6", "six")}, base)
	for i, commit := range []object.ID{onto, tip} {
		b.SetRef("refs/heads/"+strconv.Itoa(i), commit.String())
	}
	b.Git("push", "-q", dir, "refs/heads/*:refs/heads/*")
	replay := history.Replay{
		Base: base, Tip: tip, Onto: onto, Merger: c.Merger(dir),
		Committer: history.Signature{Name: "c", Email: "c@example.invalid", When: time.Unix(1_700_000_000, 0)},
	}
	got, err := r.Rebase(t.Context(), replay)
	check(t, err)
	tree, err := r.CommitTree(got.Tip)
	check(t, err)
	for path, want := range map[string]string{"b": manyLines("6", "six"), "d/f": manyLines("1", "theirs\nours")} {
		entry, err := r.Find(tree, path)
		check(t, err)
		content, err := r.Content(entry.ID)
		check(t, err)
		if string(content) != want {
			t.Errorf("%s is %q, want %q", path, content, want)
		}
	}
	replay.Onto = commitOf(t, b, map[string]string{"a": "all is other\n"}, base)
	b.SetRef("refs/heads/3", replay.Onto.String())
	b.Git("push", "-q", dir, "refs/heads/3:refs/heads/3")
	var conflict *history.Conflict
	if _, err := r.Rebase(t.Context(), replay); !errors.As(err, &conflict) || !slices.Contains(conflict.Paths, "a") {
		t.Errorf("the error is %v, want a conflict at a", err)
	}
}
