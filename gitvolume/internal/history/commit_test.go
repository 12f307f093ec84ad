package history

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// TestSignature compares with what git makes of the same name, address and time (C24).
func TestSignature(t *testing.T) {
	r, peer := newRepository(t)
	plain := someone()
	for _, s := range []Signature{
		{"Bot <x>\n evil", "a>b@c", plain.When},
		{" . Bot, Jr.", "<bot@example.com>", plain.When},
		{"\"'\\;:", "x", plain.When},
		{"", "x", plain.When},
		{".", "x", plain.When},
		{"\xff", "\xff", plain.When},
		{"a\tb\rc\x01d\x7f", " e@f ", plain.When},
		{strings.Repeat("n", 300), "", plain.When},
		{"Zoë", "z@example.com", time.Unix(0, 0).UTC()},
		{"a", "b", time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", -(3*60+30)*60))},
		{"a", "b", time.Date(2026, 3, 1, 12, 0, 0, 0, time.FixedZone("", 14*3600))},
	} {
		peer.env = append(peer.env, "GIT_AUTHOR_NAME="+s.Name, "GIT_AUTHOR_EMAIL="+s.Email, "GIT_AUTHOR_DATE="+fmt.Sprintf("@%d %s", s.When.Unix(), s.When.Format("-0700")))
		out, failed := peer.try("", "var", "GIT_AUTHOR_IDENT")
		got, err := s.encode()
		if failed != nil {
			if !errors.Is(err, ErrIdentity) {
				t.Errorf("%q: got %q, %v; git refuses it: %s", s, got, err, out)
			}
			continue
		}
		if want := strings.TrimSuffix(out, "\n"); err != nil || got != want {
			t.Errorf("%q: got %q, %v, git makes %q", s, got, err, want)
		}
		if _, err := r.Commit(Draft{Author: s, Committer: s}); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	early := Signature{Name: "a", When: time.Time{}}
	if got, err := early.encode(); err != nil || got != "a <> 0 +0000" {
		t.Errorf("a time before 1970: %q, %v", got, err)
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	peer.fsck()
}

func TestCommit(t *testing.T) {
	r, peer := newRepository(t)
	tree := must(r.Edit(object.ID{}, []Change{file(t, r, "f", "1")}))
	root := commit(t, r, object.ID{})
	side := commit(t, r, tree)
	draft := Draft{
		Tree: tree, Parents: []object.ID{root, side}, Message: "Subject\n\nbody \x00\xff",
		Author:    Signature{"A", "a@example.com", time.Unix(1700000000, 0).In(time.FixedZone("", -5400))},
		Committer: Signature{"C", "c@example.com", time.Unix(1700000001, 0).UTC()},
	}
	id := must(r.Commit(draft))
	if again := must(r.Commit(draft)); again != id {
		t.Errorf("the same commit is %s and %s", id, again)
	}
	if err := r.SetRef("refs/heads/main", id, object.ID{}); err != nil {
		t.Fatal(err)
	}
	peer.fsck()
	if got := peer.run("log", "-1", "--format=%T %P|%an|%ae|%ad|%cn|%B", "--date=raw", id.String()); got !=
		tree.String()+" "+root.String()+" "+side.String()+"|A|a@example.com|1700000000 -0130|C|Subject\n\nbody \xff\n" {
		t.Errorf("git reads %q", got)
	}
	d, err := r.Describe(id)
	if err != nil || d.Tree != tree || len(d.Parents) != 2 || d.Message != "Subject\n\nbody \xff\n" ||
		d.Author.Name != "A" || d.Author.Email != "a@example.com" || !d.Author.When.Equal(draft.Author.When) {
		t.Errorf("described %+v, %v", d, err)
	}
	if again := must(d.Author.encode()); again != must(draft.Author.encode()) {
		t.Errorf("the author is written back as %q", again)
	}
	for name, bad := range map[string]Draft{
		"no such tree":       {Tree: parse(t, strings.Repeat("12", 20)), Author: someone(), Committer: someone()},
		"a commit as tree":   {Tree: root, Author: someone(), Committer: someone()},
		"a tree as parent":   {Tree: tree, Parents: []object.ID{tree}, Author: someone(), Committer: someone()},
		"an author of marks": {Tree: tree, Author: Signature{Name: "<>"}, Committer: someone()},
		"no committer":       {Tree: tree, Author: someone()},
	} {
		if got, err := r.Commit(bad); err == nil {
			t.Errorf("%s: made %s", name, got)
		}
	}
}

func TestCommitOf(t *testing.T) {
	r, peer := newRepository(t)
	id := commit(t, r, object.ID{})
	blob := must(r.Blob([]byte("x")))
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	tag := func(of object.ID, kind string) object.ID {
		return peer.id("object "+of.String()+"\ntype "+kind+"\ntag t\ntagger a <b> 1 +0000\n\nx\n", "mktag")
	}
	once := tag(id, "commit")
	twice := tag(once, "tag")
	for _, from := range []object.ID{id, once, twice} {
		if got, err := r.CommitOf(from); err != nil || got != id {
			t.Errorf("the commit of %s is %s, %v", from, got, err)
		}
	}
	for _, from := range []object.ID{blob, tag(blob, "blob")} {
		if got, err := r.CommitOf(from); !errors.Is(err, ErrNotCommit) {
			t.Errorf("the commit of %s is %s, %v", from, got, err)
		}
	}
	long := once
	for range maxTags {
		long = tag(long, "tag")
	}
	if got, err := r.CommitOf(long); !errors.Is(err, ErrTooLarge) {
		t.Errorf("the commit of a long chain is %s, %v", got, err)
	}
}
