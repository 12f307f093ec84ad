package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const goodMod = "module liken.sh/pernode\n\ngo 1.26.0\n\nrequire liken.sh/csicommon v0.0.0\n\nreplace liken.sh/csicommon => ../csicommon\n"

// testRepository has a driver that builds, and one fragment, in one commit on main.
func testRepository(t *testing.T, more map[string]string) repository {
	t.Helper()
	r := repository{root: t.TempDir()}
	files := map[string]string{
		"go.work":                        "go 1.26.0\n",
		"csicommon/go.mod":               "module liken.sh/csicommon\n\ngo 1.26.0\n",
		"csicommon/name.go":              "// Package csicommon is shared.\npackage csicommon\n\nconst Name = \"n\"\n",
		"pernode/go.mod":                 goodMod,
		"pernode/cmd/pernode/main.go":    "package main\n\nimport \"liken.sh/csicommon\"\n\nfunc main() { _ = csicommon.Name }\n",
		"pernode/changes/disk.fixed.md":  "A full disk is told.\n",
		"gitvolume/changes/ref.added.md": "A ref.\n",
	}
	for name, text := range more {
		files[name] = text
	}
	for name, text := range files {
		if text != "" {
			put(t, r, name, text)
		}
	}
	mustGit(t, r, "init", "--quiet", "--initial-branch", "main")
	mustGit(t, r, "config", "user.name", "Test")
	mustGit(t, r, "config", "user.email", "test@example.com")
	mustGit(t, r, "config", "commit.gpgSign", "false")
	mustGit(t, r, "add", ".")
	mustGit(t, r, "commit", "--quiet", "-m", "Begin")
	return r
}

func put(t *testing.T, r repository, name, text string) {
	t.Helper()
	path := filepath.Join(r.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mustGit(t *testing.T, r repository, arguments ...string) string {
	t.Helper()
	output, err := r.git(arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

var testTime = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestPrepareCommitsTheChangelogOfOneDriver(t *testing.T) {
	r := testRepository(t, nil)
	mustGit(t, r, "tag", "pernode/v0.1.9")
	mustGit(t, r, "tag", "gitvolume/v0.4.0")
	release, err := prepare(r, "pernode", "", testTime)
	if err != nil {
		t.Fatal(err)
	}
	if release.String() != "pernode/v0.1.10" || release.commit != mustGit(t, r, "rev-parse", "HEAD") {
		t.Errorf("the release is %s of %s", release, release.commit)
	}
	if status := mustGit(t, r, "status", "--porcelain"); status != "" {
		t.Errorf("what is in no commit: %s", status)
	}
	changed := mustGit(t, r, "show", "--format=", "--name-status", "--no-renames", "HEAD")
	if want := "A\tpernode/CHANGELOG.md\nD\tpernode/changes/disk.fixed.md"; changed != want {
		t.Errorf("the commit changes\n%s\nwant\n%s", changed, want)
	}
	if _, err := r.released(release.tag); err == nil || !strings.Contains(err.Error(), "has no tag pernode/v0.1.10") {
		t.Errorf("without its tag it is released: %v", err)
	}
	mustGit(t, r, "tag", release.String())
	if notes, err := r.released(release.tag); err != nil || notes != "### Fixed\n\n- A full disk is told.\n" {
		t.Errorf("the notes are %q, %v", notes, err)
	}
	if _, err := prepare(r, "pernode", "", testTime); err == nil || !strings.Contains(err.Error(), "has no fragment") {
		t.Errorf("a second release of the same changes: %v", err)
	}
	// The other driver's release goes on from its own tag.
	if v, err := r.next("gitvolume", "", nil); err != nil || v != "v0.4.1" {
		t.Errorf("the other driver goes on with %s, %v", v, err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	for name, row := range map[string]struct {
		files  map[string]string
		spoil  func(t *testing.T, r repository)
		wanted string
		says   string
	}{
		"a file that is in no commit": {spoil: func(t *testing.T, r repository) { put(t, r, "stray", "x") }, says: "?? stray"},
		"a change that is in none":    {spoil: func(t *testing.T, r repository) { put(t, r, "go.work", "go 1.26.1\n") }, says: "M go.work"},
		"another branch":              {spoil: func(t *testing.T, r repository) { mustGit(t, r, "checkout", "--quiet", "-b", "try") }, says: "the branch try"},
		"no fragment":                 {files: map[string]string{"pernode/changes/disk.fixed.md": ""}, says: "has no fragment"},
		"a file that is no fragment":  {files: map[string]string{"pernode/changes/note.txt": "x"}, says: "note.txt is no fragment"},
		"no version":                  {wanted: "1.0", says: "want vX.Y.Z"},
		"a version that was before":   {spoil: func(t *testing.T, r repository) { mustGit(t, r, "tag", "pernode/v0.2.0") }, wanted: "v0.1.3", says: "after v0.2.0"},
		"csicommon from elsewhere": {
			files: map[string]string{"pernode/go.mod": strings.Replace(goodMod, "=> ../csicommon", "=> example.com/csicommon v1.0.0", 1)},
			says:  "want replace liken.sh/csicommon => ../csicommon",
		},
		"another module from beside it": {
			files: map[string]string{"pernode/go.mod": goodMod + "\nreplace example.com/m => ../m\n"},
			says:  "replaces example.com/m",
		},
		"what does not build": {
			files: map[string]string{"pernode/cmd/pernode/main.go": "package main\n\nimport \"liken.sh/csicommon\"\n\nfunc main() { _ = csicommon.Gone }\n"},
			says:  "does not build from what is committed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testRepository(t, row.files)
			if row.spoil != nil {
				row.spoil(t, r)
			}
			head, status := mustGit(t, r, "rev-parse", "HEAD"), mustGit(t, r, "status", "--porcelain")
			_, err := prepare(r, "pernode", row.wanted, testTime)
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%v, want %q", err, row.says)
			}
			if mustGit(t, r, "rev-parse", "HEAD") != head || mustGit(t, r, "status", "--porcelain") != status {
				t.Error("the checkout is not as it was")
			}
		})
	}
}

func TestReleasedRefusesATagThatWasNotPrepared(t *testing.T) {
	r := testRepository(t, nil)
	mustGit(t, r, "tag", "pernode/v0.1.0")
	if _, err := r.released(tag{"pernode", "v0.1.0"}); err == nil || !strings.Contains(err.Error(), "was not prepared") {
		t.Errorf("%v", err)
	}
}

func TestParseTag(t *testing.T) {
	for text, says := range map[string]string{
		"pernode/v1.2.3": "", "gitvolume/v0.1.0": "",
		"csicommon/v1.2.3": "want pernode or gitvolume", "v1.2.3": "no tag", "pernode/1.2.3": "want vX.Y.Z", "pernode/v1.2": "want vX.Y.Z",
	} {
		got, err := parseTag(text)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
		if err == nil && got.String() != text {
			t.Errorf("%q was read as %s", text, got)
		}
	}
}

// The rehearsal's clone is of what is committed, with the tags that versions follow from.
func TestCloneHasTheCommitAndTheTags(t *testing.T) {
	r := testRepository(t, nil)
	mustGit(t, r, "tag", "pernode/v0.1.0")
	mustGit(t, r, "checkout", "--quiet", "-b", "try")
	put(t, r, "stray", "x")
	clone, err := r.clone(filepath.Join(t.TempDir(), "clone"))
	if err != nil {
		t.Fatal(err)
	}
	release, err := prepare(clone, "pernode", "", testTime)
	if err != nil || release.String() != "pernode/v0.1.1" {
		t.Errorf("the release is %s, %v", release, err)
	}
	if mustGit(t, r, "rev-parse", "HEAD") == release.commit || mustGit(t, r, "tag") != "pernode/v0.1.0" {
		t.Error("the rehearsal changed the repository it is of")
	}
}
