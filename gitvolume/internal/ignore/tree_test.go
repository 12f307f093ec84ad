package ignore_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/ignore"
)

// kept walks a tree as a scanner does, one level for each directory, and is what is
// not ignored: all but directories.
func kept(t failer, root string, class ignore.Patterns) []string {
	t.Helper()
	own := func(dir string) ignore.Patterns {
		path := filepath.Join(root, dir, ".gitignore")
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
			return ignore.Patterns{}
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		return ignore.Parse(content)
	}
	var paths []string
	var walk func(level *ignore.Level, dir string)
	walk = func(level *ignore.Level, dir string) {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			t.Fatalf("read a directory: %v", err)
		}
		for _, entry := range entries {
			name := entry.Name()
			switch {
			case name == ".git", level.Ignored(name, entry.IsDir()).Ignored():
			case entry.IsDir():
				walk(level.Enter(name, own(dir+name)), dir+name+"/")
			case entry.Type().IsRegular(), entry.Type() == fs.ModeSymlink:
				paths = append(paths, dir+name)
			}
		}
	}
	walk(ignore.Root(class, own("")), "")
	slices.Sort(paths)
	return paths
}

// keptByGit is what git add would take of an untracked tree.
func keptByGit(t failer, repo *repository) []string {
	t.Helper()
	out := repo.run(t, "ls-files", "--others", "--exclude-standard", "-z")
	paths := strings.Split(out, "\x00")
	paths = paths[:len(paths)-1]
	slices.Sort(paths)
	return paths
}

// C32: negation, directories alone, anchors, a link named as an ignored directory.
func TestTree(t *testing.T) {
	repo := testRepository(t)
	for _, dir := range []string{"dir/sub", "build", "bar", "foo", "x/build", "x/top", "l"} {
		mkdir(t, filepath.Join(repo.root, dir))
	}
	for _, file := range []string{
		"dir/a.log", "dir/sub/b.log", "build/o", "x/build/o", "top", "x/top/f", "foo/keep", "bar/keep", "bar/drop", "#hash",
	} {
		write(t, filepath.Join(repo.root, file), "x")
	}
	symlink(t, "dir", filepath.Join(repo.root, "buildlink"))
	symlink(t, "../dir", filepath.Join(repo.root, "l/build"))
	write(t, filepath.Join(repo.root, ".gitignore"), "*.log\n!dir/*\nbuild/\n/top\nfoo\n!foo/keep\nbar/*\n!bar/keep\n")

	want := strings.Fields("#hash .gitignore bar/keep buildlink dir/a.log l/build x/top/f")
	if got := kept(t, repo.root, ignore.Patterns{}); !slices.Equal(got, want) {
		t.Errorf("kept are %q, want %q", got, want)
	}
	if got := keptByGit(t, repo); !slices.Equal(got, want) {
		t.Errorf("git keeps %q, want %q", got, want)
	}
}

// C32: the class's list counts as git's core.excludesFile does.
func TestClassCountsLeast(t *testing.T) {
	repo := testRepository(t)
	class := []string{"*.tmp", "/cache/", "!keep.tmp", "*.bak"}
	list := filepath.Join(repo.home, "class")
	write(t, list, strings.Join(class, "\n"))
	repo.options = []string{"-c", "core.excludesFile=" + list}
	for _, file := range []string{
		"a.tmp", "keep.tmp", "cache/x", "sub/cache/y", "sub/z.tmp", "sub/a.tmp", "sub/keep.tmp", "a.bak", "sub/b.bak",
	} {
		mkdir(t, filepath.Dir(filepath.Join(repo.root, file)))
		write(t, filepath.Join(repo.root, file), "x")
	}
	write(t, filepath.Join(repo.root, ".gitignore"), "!a.bak\nsub/keep.tmp\n")
	write(t, filepath.Join(repo.root, "sub/.gitignore"), "!z.tmp\n")

	want := strings.Fields(".gitignore a.bak keep.tmp sub/.gitignore sub/cache/y sub/z.tmp")
	if got := kept(t, repo.root, ignore.FromList(class)); !slices.Equal(got, want) {
		t.Errorf("kept are %q, want %q", got, want)
	}
	if got := keptByGit(t, repo); !slices.Equal(got, want) {
		t.Errorf("git keeps %q, want %q", got, want)
	}
}

// git reads no pattern through a link, which could lead out of the tree.
func TestWhatIsNoPatternFile(t *testing.T) {
	repo := testRepository(t)
	for _, dir := range []string{"link", "directory/.gitignore", "twice"} {
		mkdir(t, filepath.Join(repo.root, dir))
	}
	write(t, filepath.Join(repo.root, "patterns"), "*\n")
	symlink(t, "../patterns", filepath.Join(repo.root, "link/.gitignore"))
	write(t, filepath.Join(repo.root, "link/f"), "x")
	write(t, filepath.Join(repo.root, "directory/f"), "x")
	write(t, filepath.Join(repo.root, "directory/.gitignore/f"), "x")

	got, want := kept(t, repo.root, ignore.Patterns{}), keptByGit(t, repo)
	if !slices.Equal(got, want) || !slices.Contains(got, "link/f") {
		t.Errorf("kept are %q, git keeps %q", got, want)
	}
}

// Tracked files can lie in ignored directories, so a scanner enters those: whatever
// is untracked there is ignored by the pattern that ignored the directory.
func TestEnterIgnoredDirectory(t *testing.T) {
	root := ignore.Root(ignore.Patterns{}, ignore.Parse([]byte("# ours\nout/\n!f\n")))
	level := root.Enter("out", ignore.Parse([]byte("!*"))).Enter("deep", ignore.Parse([]byte("!f")))
	verdict := level.Ignored("f", false)
	if want := (decision{".gitignore", 2, "out/"}); !verdict.Ignored() || decisionOf(verdict) != want {
		t.Errorf("decided by %s, want %s", verdict, want)
	}
}

func TestVerdict(t *testing.T) {
	class := ignore.FromList([]string{"*.tmp", "*.o"})
	level := ignore.Root(class, ignore.Patterns{}).Enter("a\n", ignore.Parse([]byte("\n!b\n"))).Enter("c", ignore.Patterns{})
	for name, want := range map[string]string{
		"x":   `no pattern`,
		"x.o": `pattern 2 of the class, "*.o"`,
		"b":   `line 2 of "a\n/.gitignore", "!b"`,
	} {
		if got := level.Ignored(name, false).String(); got != want {
			t.Errorf("the verdict on %q is %s, want %s", name, got, want)
		}
	}
	if v := (ignore.Verdict{}); v.Ignored() || v.Line() != 0 || v.Pattern() != "" || v.File() != "" {
		t.Errorf("the zero verdict is %s", v)
	}
}

// A Tree reads the patterns of each directory once, and none of an ignored one,
// where a program could have planted a million.
func TestTreeReads(t *testing.T) {
	read := map[string]int{}
	tree := ignore.NewTree(ignore.Patterns{}, func(dir string) (ignore.Patterns, error) {
		read[dir]++
		return ignore.Parse([]byte("out\n")), nil
	})
	for _, path := range []string{"a/b/f", "a/b/g", "a/f", "f", "a/out/x/f", "a/out/f"} {
		verdict, err := tree.Ignored(path, false)
		if err != nil || verdict.Ignored() != strings.Contains(path, "out") {
			t.Errorf("ignored of %q: %s, %v", path, verdict, err)
		}
	}
	for _, dir := range []string{"", "a", "a/b"} {
		if read[dir] != 1 {
			t.Errorf("the patterns of %q were read %d times", dir, read[dir])
		}
		delete(read, dir)
	}
	if len(read) != 0 {
		t.Errorf("read too: %v", read)
	}
}

func TestTreeReadFails(t *testing.T) {
	broken := errors.New("broken disk")
	failing := "a"
	tree := ignore.NewTree(ignore.Patterns{}, func(dir string) (ignore.Patterns, error) {
		if dir == failing {
			return ignore.Patterns{}, broken
		}
		return ignore.Parse([]byte("f")), nil
	})
	for range 2 {
		if _, err := tree.Ignored("a/b/f", false); !errors.Is(err, broken) {
			t.Errorf("the error is %v", err)
		}
	}
	failing = "none"
	if v, err := tree.Ignored("a/b/f", false); err != nil || v.File() != "a/b/.gitignore" {
		t.Errorf("after the fault: %s, %v", v, err)
	}
}
