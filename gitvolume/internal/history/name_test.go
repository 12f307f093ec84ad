package history

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

// lookalikes are names around the ones that git treats in a special way (C28).
func lookalikes() []string {
	names := []string{
		"", ".", "..", "...", ". ", ".. ", "a/b", "git", "g~1", "gi~1", "git~", "git~2", "git~10", "git~1x", "git ~1",
		"\\", "a\\", "a\\.git", "a\\.git\\b", ".git\\config", "\\.gitmodules", "a\\gitmod~1", "a\\.gitattributes",
		".gıt", "．git", ".g\xe2\x80git", "\xff.git", ".g\xffit", ".giT\xef\xbf\xbe", ".git\xef\xbf\xbf", ".git\xf4\x90\x80\x80", ".git\xed\xa0\x80", ".git\xc1\x81", ".git\xf0\x9f\xbf\xbe",
		"git~1.", "GIT~1 ", "gIt~1:x", ".git::$INDEX_ALLOCATION", ".git:x", ".gitx", ".git-", "ok", "-rf",
	}
	unseen := []string{"\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u206a", "\u206f", "\ufeff", "\u200b", "\u2010", "\u202f", "\u2070"}
	for file, short := range map[string]string{"git": "", "gitmodules": "gi7eba", "gitattributes": "gi7d29", "gitignore": "gi250a", "mailmap": "maba30"} {
		for _, name := range []string{"." + file, "." + strings.ToUpper(file), file} {
			for _, end := range []string{"", ".", " ", ". .", ":x", ".:", "x", " x", "\\", "\\x", "\xff", "\n"} {
				names = append(names, name+end)
			}
			for _, char := range unseen {
				names = append(names, name[:2]+char+name[2:], char+name, name+char)
			}
		}
		if short == "" {
			continue
		}
		for _, number := range []string{"~0", "~1", "~2", "~4", "~5", "~9", "~01", "~1 .", "~1:", "~1x"} {
			names = append(names, file[:6]+number, strings.ToUpper(file[:6])+number, short+number)
		}
		for cut := range 6 {
			for _, tilde := range []string{"~1", "~9", "~0", "~123456"} {
				name := short[:cut] + tilde
				names = append(names, name, (name + "234567")[:8], (name + "234567")[:8]+".", (name + "234567")[:8]+"x", short[:cut]+"\xe9~1234")
			}
		}
	}
	return names
}

// TestNamesAgainstGit asks git fsck, as a server does, about a tree with each name, as
// each kind of entry.
func TestNamesAgainstGit(t *testing.T) {
	t.Parallel()
	for _, mode := range []object.Mode{object.Regular, object.Executable, object.Symlink, object.Directory, object.Submodule} {
		t.Run(mode.String(), func(t *testing.T) {
			r, peer := newRepository(t)
			names := lookalikes()
			refused := peer.refused(r, names, mode)
			for _, name := range names {
				err := CheckKind(name, mode)
				if err != nil && !errors.Is(err, ErrName) {
					t.Errorf("%q: %v", name, err)
				}
				if strings.Contains(name, "/") || name == "" {
					continue // A path, and what git cannot be asked about.
				}
				if refused[name] != (err != nil) {
					t.Errorf("%q: got %v, git refuses it: %v", name, err, refused[name])
				}
			}
		})
	}
}

// refused asks git which of the names a tree must not hold, by a tree for each. Each
// names an object of its own, since some faults are told of that.
func (p *peer) refused(r *Repository, names []string, mode object.Mode) map[string]bool {
	p.t.Helper()
	about := map[string]string{}
	for i, name := range names {
		if name == "" {
			continue
		}
		id := must(r.Blob(fmt.Append(nil, i)))
		if mode == object.Directory {
			id = must(r.putTree([]node{newNode("f", object.Regular, id)}))
		}
		if mode == object.Submodule {
			id[0] ^= 0xff // A commit of another repository is not in this one.
		}
		about[id.String()] = name
		about[must(r.putTree([]node{newNode(name, mode, id)})).String()] = name
	}
	if err := r.Flush(); err != nil {
		p.t.Fatal(err)
	}
	refused := map[string]bool{}
	out, _ := p.try("", "fsck", "--strict", "--no-dangling", "--no-progress")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[0] == "error" && fields[1] == "in" {
			refused[about[strings.TrimSuffix(fields[3], ":")]] = true
		}
	}
	return refused
}

// TestNamesOrdinary draws names that git holds.
func TestNamesOrdinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9_,=+-][^/\x00\\~]{0,20}`).Draw(t, "name")
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	})
}
