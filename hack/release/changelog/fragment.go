// Package changelog makes a driver's changelog of fragments, one file a change, so that
// two changes never meet in one line of it. It must never commit anything, nor decide
// what a release is called.
package changelog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Kind is what a change is for whoever runs the driver. It is also the heading that the
// change is listed below.
type Kind string

// The kinds of changes. A note for upgraders says what a person has to do.
const (
	Upgrade  Kind = "Upgrade notes"
	Security Kind = "Security"
	Added    Kind = "Added"
	Changed  Kind = "Changed"
	Fixed    Kind = "Fixed"
)

// kinds are in the order in which a release lists them: what needs doing first.
func kinds() []Kind { return []Kind{Upgrade, Security, Added, Changed, Fixed} }

// kindNames are those that files are named with.
func kindNames() map[string]Kind {
	return map[string]Kind{"upgrade": Upgrade, "security": Security, "added": Added, "changed": Changed, "fixed": Fixed}
}

// Fragment is one change, told to whoever runs the driver.
type Fragment struct {
	// File is its path.
	File string
	Kind Kind
	// Text is Markdown without headings.
	Text string
}

// fragmentName is that of a file: what it is about and its kind, as in
// full-disk.fixed.md.
var fragmentName = regexp.MustCompile(`^[a-z0-9-]+\.(upgrade|security|added|changed|fixed)\.md$`)

// relativeLink leads elsewhere once the text is in the changelog.
var relativeLink = regexp.MustCompile(`\]\(([^)]*)\)`)

// Fragments reads those in the directory, in the order of their names. One that is not
// there has none. Every file that is no fragment is an error: it would be in no release.
func Fragments(dir string) ([]Fragment, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the changes: %w", err)
	}
	var found []Fragment
	var wrong []error
	for _, entry := range entries {
		fragment, err := read(filepath.Join(dir, entry.Name()))
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		found = append(found, fragment)
	}
	return found, errors.Join(wrong...)
}

func read(file string) (Fragment, error) {
	match := fragmentName.FindStringSubmatch(filepath.Base(file))
	if match == nil {
		return Fragment{}, fmt.Errorf("%s is no fragment: want NAME.KIND.md, where NAME has a-z, 0-9 and -, and KIND is upgrade, security, added, changed or fixed", file)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return Fragment{}, fmt.Errorf("read a change: %w", err)
	}
	text := strings.TrimSpace(string(content))
	if text == "" {
		return Fragment{}, fmt.Errorf("%s is empty: want a sentence or more for whoever runs the driver", file)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			return Fragment{}, fmt.Errorf("%s has the heading %q: want text alone, its kind is its heading", file, strings.TrimSpace(line))
		}
	}
	for _, link := range relativeLink.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(link[1], "https://") {
			return Fragment{}, fmt.Errorf("%s links to %q, which leads elsewhere from the changelog and the notes of a release: want https://… or the name alone", file, link[1])
		}
	}
	return Fragment{File: file, Kind: kindNames()[match[1]], Text: text}, nil
}

// OnlyFixes tells whether nothing but repairs is among them, after which nobody has to
// do or learn anything.
func OnlyFixes(fragments []Fragment) bool {
	return !slices.ContainsFunc(fragments, func(f Fragment) bool { return f.Kind != Fixed && f.Kind != Security })
}
