package policy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// C24: what git would write, or refuse.
func TestAuthorAsGit(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "gitconfig")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	compare := func(t interface{ Errorf(string, ...any) }, name, email string) {
		cmd := exec.Command("git", "var", "GIT_AUTHOR_IDENT")
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + empty,
			"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_AUTHOR_DATE=@0 +0000",
		}
		output, err := cmd.Output()
		want := strings.TrimSuffix(string(output), " 0 +0000\n")
		got, rule := parseAuthor(name + " <" + email + ">")
		switch {
		case err != nil || strings.HasSuffix(want, " <>"):
			if rule == "" {
				t.Errorf("name %q, address %q: git refuses it or leaves no address, we take %q", name, email, got)
			}
		case rule != "" || got.String() != strings.ToValidUTF8(want, "�"):
			t.Errorf("name %q, address %q: %q, %s; git writes %q", name, email, got, rule, want)
		}
	}
	for _, row := range [][2]string{
		{"Bot <x>\n evil", "a@b"},
		{"", "a@b"},
		{".", "a@b"},
		{"Bot", "a>b@c"},
		{strings.Repeat("x", 300), "a@b"},
		{"\xff", "a@b"},
		{"Jr., John", "a@b"},
		{"\"Bot\"", " a@b "},
		{"Bot", ""},
		{"Bot\t\x01x", "a b@c."},
		{"Bøt", "ø@b"},
	} {
		compare(t, row[0], row[1])
	}
	part := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "ø", " ", ".", ",", ":", ";", ">", `"`, `\`, "'", "\n", "\t", "\x7f", "@"}), 0, 6)
	rapid.Check(t, func(t *rapid.T) {
		compare(t, strings.Join(part.Draw(t, "name"), ""), strings.Join(part.Draw(t, "email"), ""))
	})
}

func TestAuthorAlone(t *testing.T) {
	for value, want := range map[string]string{
		"Bot <x>\n evil":  "Bot x evil <" + defaultEmail + ">",
		"Bot <x":          "Bot x <" + defaultEmail + ">",
		"Bot <a@b> \n":    "Bot <a@b>",
		"Bot <x> <a@b>":   "Bot x <a@b>",
		"A\x00B <a@b>":    "AB <a@b>",
		" Bot  the  2nd ": "Bot  the  2nd <" + defaultEmail + ">",
	} {
		if got, rule := parseAuthor(value); rule != "" || got.String() != want {
			t.Errorf("%q is %q, %s, want %q", value, got, rule, want)
		}
	}
}
