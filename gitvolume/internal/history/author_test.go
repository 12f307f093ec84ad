package history

import (
	"fmt"
	"strings"
	"testing"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// kept says that a line stays as it is.
const kept = "kept"

// authorLines are lines of who and when, those that git does not write among them, and
// what a rebase makes of them; empty is whatever is right.
func authorLines() map[string]string {
	return map[string]string{
		"a <a@b> 1 +0000": kept, " <a@b> 1 +0000": kept, "  .a; <> 0 -0000": kept, "a  <a b> 1 +9999": kept, "\xff\xfe <\xff> 12 +0130": kept,
		"a <a@b> 9223372036854775806 +0000": kept, "A \t <.a@b.> 1 -0730": kept, "a\r <b> 1 +0000": kept,
		"<a@b> 1 +0000": "a@b <a@b> 1 +0000", "<> 1 +0000": "unknown <> 1 +0000", "": "unknown <> 0 +0000",
		"a<a@b> 1 +0000": "a <a@b> 1 +0000", "a <a@b>1 +0000": "a <a@b> 1 +0000", "a <a@b> 01 +0000": "a <a@b> 1 +0000",
		"a <a@b> 1 0130": "a <a@b> 1 +0000", "a <a@b> 1 +01300": "a <a@b> 1 +0000", "a <a@b> x +0000": "", "a <a@b": "", "a <a@b>": "",
		"a <a<b> 1 +0000": "a <ab> 1 +0000", "a> <b> 1 +0000": "a <b> 1 +0000", "a <b> -1 +0000": "a <b> 0 +0000", "a <b> 1": "a <b> 1 +0000",
		"a <b> 1 +0000 ": "a <b> 1 +0000", "a <b>  1 +0000": "a <b> 1 +0000", "a <b> 9223372036854775807 +0000": "", "a <b> 99999999999999999999 +0000": "",
		"a\x00 <b> 1 +0000": "a <b> 1 +0000",
	}
}

// TestRebaseKeepsAuthorLines replays commits of others: their lines stay byte for byte, or
// become such that git takes them.
func TestRebaseKeepsAuthorLines(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	r := w.repository
	base := commit(t, r, must(r.Edit(object.ID{}, []Change{file(t, r, "a", "1")})))
	onto := commit(t, r, must(r.Edit(object.ID{}, []Change{file(t, r, "a", "1"), file(t, r, "b", "1")})), base)
	tree := must(r.Edit(object.ID{}, []Change{file(t, r, "a", "2")}))
	for line, want := range authorLines() {
		t.Run(line, func(t *testing.T) {
			content := fmt.Sprintf("tree %s\nparent %s\nauthor %s\ncommitter c <c@d> 1 +0000\n\nx\n", tree, base, line)
			raw := must(r.put(git.ObjectCommit, []byte(content)))
			if want == kept && !fsckTakes(t, r, content) {
				t.Error("git refuses it as it is")
			}
			done, err := r.Rebase(t.Context(), w.replay(base, raw, onto))
			if err != nil {
				t.Fatal(err)
			}
			made := string(must(r.get(done.Tip, git.ObjectCommit, maxCommit)))
			_, after, _ := strings.Cut(made, "\nauthor ")
			got, _, _ := strings.Cut(after, "\n")
			if want == kept {
				want = line
			}
			if want != "" && got != want {
				t.Errorf("the author is %q, want %q", got, want)
			}
			if !fsckTakes(t, r, made) {
				t.Errorf("git refuses %q", got)
			}
		})
	}
}

// fsckTakes tells whether git finds no fault with a commit.
func fsckTakes(t *testing.T, r *Repository, content string) bool {
	t.Helper()
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	peer := newPeer(t, r.dir)
	id := peer.feed(content, "hash-object", "-t", "commit", "-w", "--literally", "--stdin")
	out, _ := peer.try("", "fsck", "--strict", "--full", "--no-dangling", "--no-progress") // It fails for any.
	return !strings.Contains(out, "commit "+id)
}
