package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository's, seen from this package.
const root = "../.."

// pages returns the text of every page of the repository, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		found[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d pages below %s", len(found), root)
	}
	return found
}

var (
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headingPattern = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fencePattern   = regexp.MustCompile("(?ms)^```.*?^```$")
	notInAnchor    = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// anchors are those that a forge makes of a page's headings.
func anchors(text string) map[string]bool {
	found := make(map[string]bool)
	for _, heading := range headingPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
		found[strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-")] = true
	}
	return found
}

func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	checked := 0
	for path, text := range all {
		for _, link := range linkPattern.FindAllStringSubmatch(fencePattern.ReplaceAllString(text, ""), -1) {
			file, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			checked++
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %q: %v", path, link[1], err)
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s: link %q: %s has no such heading", path, link[1], target)
			}
		}
	}
	if checked == 0 {
		t.Error("no link was found")
	}
}
