package ignore_test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/ignore"
)

// No content and no path makes the package panic or take long, and what it decides
// git decides too.
func FuzzPatterns(f *testing.F) {
	for _, seed := range []struct {
		content, path string
		isDir         bool
	}{
		{"\xef\xbb\xbfa\r\n#b\n\\#c\n!d\\ \n", "d ", false},
		{"a\x00b\n", "a", false},
		{"/a/*/b\n!/a/**/b/\n", "a/c/b", true},
		{"a/b**/c\n", "a/bx/y/c", false},
		{`**\/a`, "b/a", false},
		{`[]-a[:digit:]\]-]x[!^]`, "5xy", false},
		{"[[:alpha:", ":", false},
		{"*a*a*a*a*b", strings.Repeat("a", 60), false},
		{strings.Repeat("*a", 200) + "b", strings.Repeat("a", 199), false},
		{strings.Repeat("**/a*", 50) + "b", strings.Repeat("a/", 90) + "a", false},
	} {
		f.Add([]byte(seed.content), seed.path, seed.isDir)
	}
	repo := newRepository(f, f.TempDir())
	git := repo.ask(f)
	f.Cleanup(git.close)
	number := 0
	f.Fuzz(func(t *testing.T, content []byte, path string, isDir bool) {
		if !askable(path) {
			return
		}
		start := time.Now()
		patterns := ignore.Parse(content)
		tree := ignore.NewTree(patterns, func(string) (ignore.Patterns, error) { return ignore.Patterns{}, nil })
		verdict, err := tree.Ignored(path, isDir)
		if err != nil {
			t.Fatalf("read: %v", err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%d bytes of patterns took %s", len(content), took)
		}
		if strings.Count(string(content), "*") > 8 {
			// git 2.39 might never come to an end.
			return
		}
		number++
		dir := filepath.Join(repo.root, strconv.Itoa(number))
		mkdir(t, dir)
		defer removeAll(t, dir)
		write(t, filepath.Join(dir, ".gitignore"), string(content))
		if isDir {
			mkdir(t, filepath.Join(dir, path))
		}
		want := git.decides(t, strconv.Itoa(number)+"/"+path)
		if got := decisionOf(verdict); got.line != want.line || got.pattern != want.pattern {
			t.Errorf("patterns %q decide on %q by %s, git has %s", content, path, got, want)
		}
	})
}

// askable tells whether a path is one that git can be asked about: relative, short
// enough to be made, and through nothing that git takes for its own.
func askable(path string) bool {
	if len(path) > 200 || strings.Contains(path, "\x00") {
		return false
	}
	for component := range strings.SplitSeq(path, "/") {
		switch component {
		case "", ".", "..", ".git", ".gitignore":
			return false
		}
	}
	return true
}
