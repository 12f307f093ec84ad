package ignore_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/ignore"
)

// pieces put together are patterns that mean something often enough, and are odd
// often enough.
var pieces = []string{
	"a", "b", "c", "ab", "/", "/", "*", "*", "**", "**/", "/**", "/**/", "***", "?", "[ab]", "[!a]", "[^b]", "[a-c]",
	"[b-a]", "[]b]", "[!]a]", "[a", "[[:alpha:]]", "[![:digit:]]", "[[:word:]]", "[[:alpha]", "[a-]", "[-b]", `[\]a]`,
	"[/]", "[", "]", "-", ":", "!", "#", " ", `\ `, `\`, `\*`, `\/`, `\a`, "\r", "\t", "\x00", "\xff",
}

var lineOfPieces = rapid.Custom(func(t *rapid.T) string {
	start := rapid.SampledFrom([]string{"", "", "", "!", "/", "#", " ", `\`}).Draw(t, "start")
	middle := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "pieces")
	end := rapid.SampledFrom([]string{"", "", "", "/", " ", "\r"}).Draw(t, "end")
	return start + strings.Join(middle, "") + end
})

var component = rapid.Custom(func(t *rapid.T) string {
	// A name that git takes for its own or for a parent is not asked about.
	return rapid.StringOfN(rapid.SampledFrom([]rune("aaabbbc*[]\\-:!# \r\t1")), 1, 4, -1).Draw(t, "component")
})

// Random patterns decide on random paths as in git.
func TestRandomPatterns(t *testing.T) {
	repo := testRepository(t)
	git := repo.ask(t)
	defer git.close()
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(lineOfPieces, 1, 3).Draw(t, "lines")
		content := strings.Join(lines, "\n")
		paths := rapid.SliceOfN(rapid.SliceOfN(component, 1, 4), 1, 12).Draw(t, "paths")
		// git remembers what it read, so each check has a directory of its own.
		number++
		dir := strconv.Itoa(number)
		mkdir(t, filepath.Join(repo.root, dir))
		write(t, filepath.Join(repo.root, dir, ".gitignore"), content)
		tree := treeAt(repo.root, ignore.Patterns{})
		for i, components := range paths {
			path := dir + "/" + strings.Join(components, "/")
			isDir := i%3 == 0
			if isDir {
				mkdir(t, filepath.Join(repo.root, path))
			}
			info, err := os.Lstat(filepath.Join(repo.root, path))
			verdict, readErr := tree.Ignored(path, err == nil && info.IsDir())
			if readErr != nil {
				t.Fatalf("read: %v", readErr)
			}
			if got, want := decisionOf(verdict), git.decides(t, path); got != want {
				t.Errorf("patterns %q decide on %q by %s, git has %s", lines, path, got, want)
			}
		}
	})
}

// lineForTree is a line as people write them, of the names that the random trees have.
var lineForTree = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "b", "c", "*", "?", "**", "a*", "*b", "[ab]", "[!c]", "**", ".gitignore",
	}), 1, 4).Draw(t, "parts")
	start := rapid.SampledFrom([]string{"", "", "", "!", "!", "/", "!/"}).Draw(t, "start")
	end := rapid.SampledFrom([]string{"", "", "/", "/*", "/**"}).Draw(t, "end")
	return start + strings.Join(parts, "/") + end
})

// Random pattern files at every level of random trees: the walk keeps what git keeps,
// and single paths are decided by the pattern that decides in git.
func TestRandomTrees(t *testing.T) {
	base := t.TempDir()
	number := 0
	rapid.Check(t, func(t *rapid.T) {
		number++
		repo := newRepository(t, filepath.Join(base, strconv.Itoa(number)))
		class := rapid.SliceOfN(lineForTree, 0, 3).Draw(t, "class")
		list := filepath.Join(repo.home, "class")
		write(t, list, strings.Join(class, "\n"))
		repo.options = []string{"-c", "core.excludesFile=" + list}
		paths := plant(t, repo.root, "", 4)

		got, want := kept(t, repo.root, ignore.FromList(class)), keptByGit(t, repo)
		if !slices.Equal(got, want) {
			t.Errorf("kept are %q, git keeps %q", got, want)
		}
		git := repo.ask(t)
		defer git.close()
		tree := treeAt(repo.root, ignore.FromList(class))
		for _, path := range paths {
			name, isDir := strings.CutSuffix(path, "/")
			verdict, err := tree.Ignored(name, isDir)
			if err != nil {
				t.Fatalf("read: %v", err)
			}
			decided := decisionOf(verdict)
			if decided.line > 0 && decided.file == "" {
				decided.file = list
			}
			if want := git.decides(t, name); decided != want {
				t.Errorf("%q is decided by %s, git has %s", path, decided, want)
			}
		}
	})
}

// plant fills a directory and is what it made, directories with a slash at the end.
func plant(t *rapid.T, root, dir string, depth int) []string {
	var paths []string
	if rapid.IntRange(0, 2).Draw(t, "has patterns") > 0 {
		lines := rapid.SliceOfN(lineForTree, 0, 4).Draw(t, "lines")
		write(t, filepath.Join(root, dir, ".gitignore"), strings.Join(lines, "\n"))
		paths = append(paths, dir+".gitignore")
	}
	for _, name := range []string{"a", "b", "c", "ab"} {
		path := dir + name
		kind := rapid.SampledFrom([]string{"none", "file", "link", "directory", "directory"}).Draw(t, path)
		switch {
		case kind == "none":
			continue
		case kind == "link":
			symlink(t, ".", filepath.Join(root, path))
		case kind == "file" || depth == 1:
			write(t, filepath.Join(root, path), "x")
		default:
			mkdir(t, filepath.Join(root, path))
			paths = append(paths, path+"/")
			paths = append(paths, plant(t, root, path+"/", depth-1)...)
			continue
		}
		paths = append(paths, path)
	}
	return paths
}
