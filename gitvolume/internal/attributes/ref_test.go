package attributes

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const commit = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

func TestParseRef(t *testing.T) {
	for _, row := range []struct {
		kind   Kind
		text   string
		branch string
		commit bool
		full   bool
	}{
		{KindWriteable, "main", "refs/heads/main", false, false},
		{KindWriteable, "refs/heads/main", "refs/heads/main", false, true},
		{KindWriteable, "heads/main", "refs/heads/heads/main", false, false},
		{KindWriteable, "feature/x/y", "refs/heads/feature/x/y", false, false},
		{KindWriteable, "release", "refs/heads/release", false, false},
		{KindWriteable, "ünï", "refs/heads/ünï", false, false},
		{KindWriteable, strings.Repeat("a", 255-len(".pv-x.lock")), "refs/heads/" + strings.Repeat("a", 245), false, false},
		{KindWriteable, strings.Repeat("a", 250) + "/b", "refs/heads/" + strings.Repeat("a", 250) + "/b", false, false},
		{KindInline, "refs/heads/" + commit, "refs/heads/" + commit, false, true},
		{KindInline, "20260817", "refs/heads/20260817", false, false},
		{KindInline, "deadbeef", "refs/heads/deadbeef", false, false},
		{KindInline, commit[1:], "refs/heads/" + commit[1:], false, false},
		{KindInline, commit, "", true, false},
		{KindReadOnlyClaim, "refs/tags/release", "", false, true},
		{KindReadOnlyClaim, "refs/pull/1/head", "", false, true},
		{KindReadOnlyClaim, "v1", "refs/heads/v1", false, false},
		{KindReadOnlyClaim, "refs/heads/--upload-pack=id", "refs/heads/--upload-pack=id", false, true},
	} {
		ref, err := parseRef(row.kind, row.text, "pv-x")
		if err != nil {
			t.Errorf("%s %q: %v", row.kind, row.text, err)
			continue
		}
		_, isCommit := ref.Commit()
		_, isFull := ref.Full()
		if ref.String() != row.text || ref.Branch() != row.branch || isCommit != row.commit || isFull != row.full {
			t.Errorf("%s %q: %q, branch %q, commit %v, full %v", row.kind, row.text, ref, ref.Branch(), isCommit, isFull)
		}
	}
}

func TestParseRefRefuses(t *testing.T) {
	for _, row := range []struct {
		kind               Kind
		text, handle, says string
	}{
		{KindInline, "", "h", "empty"},
		{KindInline, "--upload-pack=id", "h", "option"},
		{KindInline, "HEAD", "h", "name the branch"},
		{KindInline, "@", "h", "name the branch"},
		{KindInline, "v1.0^", "h", "'^'"},
		{KindInline, "main~1", "h", "'~'"},
		{KindInline, "a:b", "h", "':'"},
		{KindInline, "a b", "h", "' '"},
		{KindInline, "a..b", "h", `".."`},
		{KindInline, "a@{1}", "h", `"@{"`},
		{KindInline, "a\nb", "h", "control byte 0x0a"},
		{KindInline, "/a", "h", "slash"},
		{KindInline, "refs/heads/", "h", "slash"},
		{KindInline, "a.lock/b", "h", ".lock"},
		{KindInline, ".a", "h", "dot"},
		{KindInline, "a.", "h", "dot"},
		{KindInline, strings.ToUpper(commit), "h", "write them in lower case"},
		{KindInline, strings.Repeat("0", 40), "h", "no commit"},
		{KindInline, strings.Repeat("ab", 32), "h", "is the id of a commit in a repository with SHA-256 ids"},
		{KindWriteable, commit, "h", "commit"},
		{KindWriteable, "refs/tags/v1", "h", "no branch"},
		{KindWriteable, "refs/git-csi/metadata", "h", "no branch"},
		{KindWriteable, "main", "pv.lock", `side branch "refs/heads/main.pv.lock"`},
		{KindWriteable, strings.Repeat("a", 246), "pv-x", "too long"},
		{KindWriteable, strings.Repeat("a", 251) + "/b", "pv-x", "at most 250"},
		{KindWriteable, strings.Repeat("a/", 1500) + "a", "pv-x", "at most 3000"},
		{KindWriteable, strings.Repeat("語/", 600) + "a", "pv-x", "name of its record"},
	} {
		ref, err := parseRef(row.kind, row.text, row.handle)
		if err == nil || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s %q of %q: %q, the error does not say %q: %v", row.kind, row.text, row.handle, ref, row.says, err)
		}
	}
}

func TestCheckRefFormatAsGit(t *testing.T) {
	compare := func(t interface{ Errorf(string, ...any) }, name string) {
		err := exec.Command("git", "check-ref-format", name).Run()
		if rule := brokenRefRule(name); (rule == "") != (err == nil) {
			t.Errorf("%q: we say %q, git %v", name, rule, err)
		}
	}
	parts := []string{"a", "refs", "heads", "/", "/", ".", ".lock", "@", "{", "-", "~", "^", ":", "?", "*", "[", "]", "\\", " ", "\t", "\x7f", "\x01", "\xff", "é", "lock"}
	for _, a := range parts {
		for _, b := range parts {
			compare(t, "refs/"+a+b)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		compare(t, strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 8).Draw(t, "parts"), ""))
	})
}
