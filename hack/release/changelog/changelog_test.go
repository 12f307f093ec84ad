package changelog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFragmentsBecomeASection(t *testing.T) {
	fragments, err := Fragments(write(t, map[string]string{
		"b-disk.fixed.md":         "A full disk is told.\n",
		"a-mount.fixed.md":        "A mount is found.\n\nIt was not before.\n",
		"flag.upgrade.md":         "Set `--store`.",
		"probe.added.md":          "A probe, see [the rule](https://example.com/rule).",
		"known-hosts.security.md": "Host keys are checked.",
		"period.changed.md":       "Every minute.",
	}))
	if err != nil {
		t.Fatal(err)
	}
	first, err := Add("", "pernode", "v0.1.0", "2026-11-30", fragments)
	if err != nil {
		t.Fatal(err)
	}
	const want = `## v0.1.0 (2026-11-30)

### Upgrade notes

- Set ` + "`--store`" + `.

### Security

- Host keys are checked.

### Added

- A probe, see [the rule](https://example.com/rule).

### Changed

- Every minute.

### Fixed

- A mount is found.

  It was not before.
- A full disk is told.
`
	if !strings.HasSuffix(first, "\n\n"+want) {
		t.Errorf("the changelog is\n%s\nwant it to end with\n%s", first, want)
	}
	second, err := Add(first, "pernode", "v0.1.1", "2026-12-01", []Fragment{{Kind: Fixed, Text: "Another."}})
	if err != nil {
		t.Fatal(err)
	}
	notes, err := Section(second, "v0.1.1")
	if want := "### Fixed\n\n- Another.\n"; err != nil || notes != want {
		t.Errorf("the notes are %q, %v, want %q", notes, err, want)
	}
	if !strings.HasSuffix(second, "- Another.\n\n"+want) {
		t.Errorf("the older section is not below as it was:\n%s", second)
	}
	if strings.Count(second, "# Changelog") != 1 {
		t.Errorf("the changelog has not one head:\n%s", second)
	}
}

func TestSectionIsOfThatVersionAlone(t *testing.T) {
	const text = "# C\n\n## v0.1.10 (d)\n\n- ten\n\n## v0.1.1 (d)\n\n- one\n"
	if notes, err := Section(text, "v0.1.1"); err != nil || notes != "- one\n" {
		t.Errorf("the notes are %q, %v", notes, err)
	}
	if _, err := Section(text, "v0.1.2"); err == nil {
		t.Error("a version without a section has notes")
	}
}

func TestRefusals(t *testing.T) {
	for file, says := range map[string]string{
		"README.md":     "NAME.KIND.md",
		"x.broken.md":   "NAME.KIND.md",
		"x.fixed.md":    "is empty",
		"head.fixed.md": "has the heading",
		"link.fixed.md": "leads elsewhere",
		"X.fixed.md":    "NAME.KIND.md",
	} {
		text := map[string]string{"x.fixed.md": " \n", "head.fixed.md": "## Fixed\n", "link.fixed.md": "See [it](docs/a.md)."}[file]
		if _, err := Fragments(write(t, map[string]string{file: text})); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", file, err, says)
		}
	}
	fixed := []Fragment{{Kind: Fixed, Text: "It."}}
	for name, row := range map[string]struct {
		changelog string
		fragments []Fragment
		says      string
	}{
		"no fragment":     {"", nil, "without a change"},
		"another's head":  {"# Releases\n", fixed, "does not begin"},
		"released before": {mustAdd(t, fixed), fixed, "already"},
	} {
		if _, err := Add(row.changelog, "pernode", "v0.1.0", "2026-11-30", row.fragments); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", name, err, row.says)
		}
	}
}

func mustAdd(t *testing.T, fragments []Fragment) string {
	t.Helper()
	text, err := Add("", "pernode", "v0.1.0", "2026-11-30", fragments)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestADirectoryThatIsNotThereHasNone(t *testing.T) {
	if fragments, err := Fragments(filepath.Join(t.TempDir(), "changes")); err != nil || len(fragments) != 0 {
		t.Errorf("%v, %v", fragments, err)
	}
}

func TestOnlyFixes(t *testing.T) {
	for kind, only := range map[Kind]bool{Fixed: true, Security: true, Added: false, Changed: false, Upgrade: false} {
		if got := OnlyFixes([]Fragment{{Kind: Fixed}, {Kind: kind}}); got != only {
			t.Errorf("with %s: %v", kind, got)
		}
	}
}
