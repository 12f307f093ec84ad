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

// A page that its driver's index does not have is found by nobody.
func TestTheIndexHasEveryPage(t *testing.T) {
	all := pages(t)
	for _, docs := range []string{"pernode/docs", "gitvolume/docs"} {
		dir := filepath.Join(root, docs)
		index := filepath.Join(dir, "README.md")
		linked := map[string]bool{index: true}
		for _, link := range linkPattern.FindAllStringSubmatch(all[index], -1) {
			file, _, _ := strings.Cut(link[1], "#")
			linked[filepath.Join(dir, file)] = true
		}
		for path := range all {
			if strings.HasPrefix(path, dir+"/") && !linked[path] {
				t.Errorf("%s does not link to %s", index, path)
			}
		}
	}
}

// reasonsIn are the reasons of Events, as the sources below the directory have them.
func reasonsIn(t *testing.T, dir string, reason *regexp.Regexp) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range reason.FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Each Event of the code has a row on its driver's page and no other has, and each that says
// that something is wrong says what to do.
func TestEachEventHasItsCure(t *testing.T) {
	all := pages(t)
	row := regexp.MustCompile("(?m)^\\| `((?:GitVolume|PerNode)\\w+)` \\| (.+) \\| (.*) ?\\|$")
	for docs, driver := range map[string]struct {
		reason *regexp.Regexp
		normal []string // Those that say that something went well.
	}{
		"pernode":   {regexp.MustCompile(`"(PerNode[A-Z]\w+)"`), nil},
		"gitvolume": {regexp.MustCompile(`"(GitVolume[A-Z]\w+)"`), []string{"GitVolumeArmed", "GitVolumeHealed", "GitVolumePushed", "GitVolumeRebased"}},
	} {
		path := filepath.Join(root, docs, "docs/reference/events.md")
		var onPage []string
		for _, match := range row.FindAllStringSubmatch(all[path], -1) {
			onPage = append(onPage, match[1])
			if cure := strings.TrimSpace(match[3]); cure == "" && !slices.Contains(driver.normal, match[1]) {
				t.Errorf("%s: nothing is to be done about %s", path, match[1])
			}
		}
		slices.Sort(onPage)
		if want := reasonsIn(t, filepath.Join(root, docs), driver.reason); len(want) < 3 || !slices.Equal(onPage, want) {
			t.Errorf("%s has the Events\n%q\nthe code\n%q", path, onPage, want)
		}
	}
}
