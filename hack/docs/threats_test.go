package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	testNamed    = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)\\w+)`")
)

// threatColumns begin the tables of which each row says by which tests a threat is met.
const threatColumns = "| Threat | What stops it | Tests |\n"

// testsOf are the directories, from the repository's root, that have a test of each name.
func testsOf(t *testing.T) map[string][]string {
	t.Helper()
	found := make(map[string][]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = append(found[match[1]], "/"+strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Each threat names a test, and each test that a page names is in the package it names.
func TestThreatsAreTested(t *testing.T) {
	tests := testsOf(t)
	rows := 0
	for path, text := range pages(t) {
		for _, named := range testNamed.FindAllStringSubmatch(text, -1) {
			isThere := func(dir string) bool { return strings.HasSuffix(dir, "/"+named[1]) }
			if !slices.ContainsFunc(tests[named[2]], isThere) {
				t.Errorf("%s: there is no test %s.%s", path, named[1], named[2])
			}
		}
		if filepath.Base(path) != "threats.md" {
			continue
		}
		for _, table := range strings.Split(text, threatColumns)[1:] {
			table, _, _ = strings.Cut(table, "\n\n")
			for _, row := range strings.Split(strings.TrimSpace(table), "\n")[1:] {
				rows++
				cells := strings.Split(strings.Trim(row, "| "), " | ")
				if len(cells) != 3 || !testNamed.MatchString(cells[2]) {
					t.Errorf("%s: no test is named in %q", path, row)
				}
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d threats were found", rows)
	}
}
