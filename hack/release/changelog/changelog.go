package changelog

import (
	"fmt"
	"strings"
)

// intro is what a changelog begins with.
const intro = `# Changelog of %s

Releases, the latest first. What a release asks of whoever upgrades to it stands first in
its section, below "Upgrade notes"; where that is missing, nothing is asked. Whoever
skips releases reads the notes of all between.
`

// Add puts a section for the version on top of the changelog of that driver, which is
// empty before the first release. The date is that of the release, as in 2026-11-30.
func Add(changelog, driver, version, date string, fragments []Fragment) (string, error) {
	if len(fragments) == 0 {
		return "", fmt.Errorf("%s has no fragment: a release without a change is none", driver)
	}
	head := fmt.Sprintf(intro, driver)
	if changelog == "" {
		changelog = head
	}
	rest, found := strings.CutPrefix(changelog, head)
	if !found {
		return "", fmt.Errorf("the changelog of %s does not begin as it should: want\n%s", driver, head)
	}
	if _, err := Section(changelog, version); err == nil {
		return "", fmt.Errorf("the changelog of %s has a section for %s already", driver, version)
	}
	return head + "\n" + render(version, date, fragments) + rest, nil
}

func render(version, date string, fragments []Fragment) string {
	var text strings.Builder
	fmt.Fprintf(&text, "## %s (%s)\n", version, date)
	for _, kind := range kinds() {
		first := true
		for _, fragment := range fragments {
			if fragment.Kind != kind {
				continue
			}
			if first {
				fmt.Fprintf(&text, "\n### %s\n\n", kind)
			}
			first = false
			text.WriteString(item(fragment.Text))
		}
	}
	return text.String()
}

// item makes a text the item of a list, all its paragraphs too.
func item(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case i == 0:
			lines[i] = "- " + line
		case line != "":
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// Section is what the changelog says of the version, without its heading: the notes of
// its release.
func Section(changelog, version string) (string, error) {
	var section []string
	inside := false
	for line := range strings.SplitSeq(changelog, "\n") {
		if strings.HasPrefix(line, "## ") {
			inside = strings.HasPrefix(line, "## "+version+" ")
			continue
		}
		if inside {
			section = append(section, line)
		}
	}
	text := strings.TrimSpace(strings.Join(section, "\n"))
	if text == "" {
		return "", fmt.Errorf("the changelog has no section for %s", version)
	}
	return text + "\n", nil
}
