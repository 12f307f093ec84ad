package worktree

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/ignore"
	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/object"
)

// volume is a tree, what is committed of it, and git with an index of its own that
// holds the same.
type volume struct {
	t      testing.TB
	dir    string
	tree   *Tree
	repo   *history.Repository
	git    []string // Its environment.
	store  string
	class  []string
	limit  int64
	memory *Memory
	root   object.ID
	record metadata.Record
}

func newVolume(t testing.TB) *volume {
	t.Helper()
	base := t.TempDir()
	v := &volume{t: t, dir: filepath.Join(base, "tree"), store: filepath.Join(base, "store")}
	home := filepath.Join(base, "home")
	mkdirs(t, v.dir, home)
	// A fresh tree's root.
	if err := os.Chmod(v.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, "gitconfig"), "")
	write(t, filepath.Join(home, "excludes"), "")
	if err := history.Create(v.store); err != nil {
		t.Fatal(err)
	}
	repo, err := history.Open(v.store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(repo.Close)
	v.repo, v.tree = repo, openTree(t, v.dir)
	v.git = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+filepath.Join(home, "gitconfig"), "HOME="+home,
		"LC_ALL=C", "GIT_DIR="+v.store, "GIT_WORK_TREE="+v.dir, "GIT_INDEX_FILE="+filepath.Join(home, "index"),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.com")
	return v
}

// at is a path of the tree.
func (v *volume) at(path string) string { return v.dir + "/" + path }

func (v *volume) write(path, content string) { v.t.Helper(); write(v.t, v.at(path), content) }

func (v *volume) do(err error) {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
}

// request is one for everything against what is committed.
func (v *volume) request() Request {
	return Request{
		Memory: v.memory, Subtrees: []string{"."}, Class: ignore.FromList(v.class), MaxFileSize: v.limit, Blobs: v.repo,
		Fresh: metadata.Plain(), Root: metadata.Seen{Kind: metadata.Directory, Mode: 0o777, Owner: uint32(os.Getuid()), Group: uint32(os.Getgid())},
	}
}

func (v *volume) scan(r Request) *Result {
	v.t.Helper()
	result, err := v.tree.Scan(v.t.Context(), r)
	if err != nil {
		v.t.Fatal(err)
	}
	return result
}

// commit scans and makes what was found the committed state.
func (v *volume) commit() *Result { v.t.Helper(); return v.adopt(v.scan(v.request())) }

func (v *volume) adopt(result *Result) *Result {
	v.t.Helper()
	root, err := v.repo.Edit(v.root, result.Changes)
	v.do(err)
	v.do(v.repo.Flush())
	record, err := v.record.Apply(result.Metadata)
	v.do(err)
	v.root, v.record, v.memory = root, record, result.Memory
	return result
}

func (v *volume) run(args ...string) string {
	v.t.Helper()
	command := exec.Command("git", append([]string{"-c", "core.bare=false", "-c", "core.fileMode=true", "-c", "core.symlinks=true"}, args...)...)
	command.Dir, command.Env = v.dir, v.git
	var failed bytes.Buffer
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		v.t.Fatalf("git %q: %v\n%s", args, err, failed.String())
	}
	return string(out)
}

// gitAdds is the tree that git writes, of all but what pathspecs exclude.
func (v *volume) gitAdds(exclude ...string) object.ID {
	v.t.Helper()
	excludes := filepath.Join(filepath.Dir(v.dir), "home", "excludes")
	write(v.t, excludes, strings.Join(v.class, "\n"))
	v.run(append([]string{"-c", "core.excludesFile=" + excludes}, append([]string{"add", "-A", "--", "."}, exclude...)...)...)
	id, err := object.Parse(strings.TrimSpace(v.run("write-tree")))
	v.do(err)
	return id
}

// equalsGit fails unless what is committed is what git would have committed, of all but
// what pathspecs exclude.
func (v *volume) equalsGit(exclude ...string) {
	v.t.Helper()
	want := v.gitAdds(exclude...)
	got := v.root
	if got.IsZero() {
		got, _ = object.Parse("4b825dc642cb6eb9a060e54bf8d69288fbee4904") // git's empty tree
	}
	if got != want {
		v.t.Fatalf("committed\n%s\ngit would\n%s", v.list(got), v.list(want))
	}
}

func (v *volume) list(tree object.ID) string {
	v.t.Helper()
	return strings.ReplaceAll(v.run("ls-tree", "-r", "-z", tree.String()), "\x00", "\n")
}

// names are the committed paths.
func (v *volume) names() []string {
	v.t.Helper()
	if v.root.IsZero() {
		return nil
	}
	return slices.Sorted(strings.SplitSeq(strings.TrimSuffix(v.run("ls-tree", "-r", "-z", "--name-only", v.root.String()), "\x00"), "\x00"))
}

// content is what is committed at a path.
func (v *volume) content(path string) string {
	v.t.Helper()
	return v.run("cat-file", "blob", v.root.String()+":"+path)
}

// wants fails unless exactly these paths are committed.
func (v *volume) wants(paths ...string) {
	v.t.Helper()
	slices.Sort(paths)
	if got := v.names(); !slices.Equal(got, paths) {
		v.t.Errorf("committed %q\nwant %q", got, paths)
	}
}

// changed are the paths of changes, with a "-" in front of what was removed.
func changed(result *Result) []string {
	var paths []string
	for _, c := range result.Changes {
		if c.Mode == 0 {
			paths = append(paths, "-"+c.Path)
		} else {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// skipped are the paths that were left out, with the reasons.
func skipped(result *Result) map[string]Reason {
	all := map[string]Reason{}
	for _, s := range result.Skipped {
		all[s.Path] = s.Reason
	}
	return all
}

func (v *volume) wantsChanges(result *Result, paths ...string) {
	v.t.Helper()
	if got := changed(result); !slices.Equal(got, paths) {
		v.t.Errorf("changed %q, want %q", got, paths)
	}
}

func (v *volume) wantsSkips(result *Result, want map[string]Reason) {
	v.t.Helper()
	if got := skipped(result); !maps.Equal(got, want) {
		v.t.Errorf("skipped %v, want %v", got, want)
	}
}

// entries is the metadata record as text, a line a path.
func entries(r metadata.Record) map[string]string {
	all := map[string]string{}
	for path, e := range r.All() {
		text := ""
		if mode, ok := e.Mode.Get(); ok {
			text += fmt.Sprintf("%04o", mode)
		}
		if owner, ok := e.Owner.Get(); ok {
			text += fmt.Sprintf(" u%d", owner)
		}
		if group, ok := e.Group.Get(); ok {
			text += fmt.Sprintf(" g%d", group)
		}
		if e.Kind == metadata.Empty {
			text += " empty"
		}
		all[path] = strings.TrimSpace(text)
	}
	return all
}

func (v *volume) wantsRecord(want map[string]string) {
	v.t.Helper()
	if got := entries(v.record); !maps.Equal(got, want) {
		v.t.Errorf("recorded %v\nwant %v", got, want)
	}
}
