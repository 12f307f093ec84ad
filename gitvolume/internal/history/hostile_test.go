package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// TestHostileTrees reads trees that git itself would not write: what has a meaning is
// given as it is, what has none is an error.
func TestHostileTrees(t *testing.T) {
	r, peer := newRepository(t)
	blob := must(r.Blob([]byte("x")))
	id := string(blob[:])
	for name, row := range map[string]struct {
		content string
		want    string // The names, joined by slashes; empty if it is no tree.
	}{
		"names of links":        {"100644 .\x00" + id + "100644 ..\x00" + id, "./.."},
		".git":                  {"40000 .GIT\x00" + id + "40000 .git\x00" + id, ".GIT/.git"},
		"twice":                 {"100644 a\x00" + id + "100644 a\x00" + id, "a/a"},
		"wrong order":           {"100644 b\x00" + id + "100644 a\x00" + id, "b/a"},
		"no UTF-8":              {"100644 \xff\xfe\x00" + id, "\xff\xfe"},
		"a slash":               {"100644 a/b\x00" + id, "a/b"},
		"an odd mode":           {"100666 a\x00" + id + "1 b\x00" + id + "060644 c\x00" + id, "a/b/c"},
		"zeros before the mode": {"0040000 a\x00" + id, "a"},
		"cut off in an id":      {"100644 a\x00" + id[:19], ""},
		"cut off in a name":     {"100644 a", ""},
		"cut off in a mode":     {"1006", ""},
		"no name":               {"100644 \x00" + id, ""},
		"no mode":               {" a\x00" + id, ""},
		"a mode of letters":     {"10064x a\x00" + id, ""},
		"an endless mode":       {"1000000000000000000000 a\x00" + id, ""},
		"zeros":                 {strings.Repeat("\x00", 100), ""},
	} {
		t.Run(name, func(t *testing.T) {
			tree := peer.id(row.content, "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
			entries, err := r.Entries(tree)
			var names []string
			for _, entry := range entries {
				names = append(names, entry.Name)
			}
			if got := strings.Join(names, "/"); got != row.want || (err != nil) != (row.want == "") || err != nil && (!errors.Is(err, ErrMalformed) || IsBroken(err)) {
				t.Errorf("got %q, %v, want %q", got, err, row.want)
			}
			// Nothing of this may crash or take for ever.
			_, _ = r.Find(tree, "a/b")
			_, _ = r.Diff(object.ID{}, tree)
			edited, err := r.Edit(tree, []Change{{"a", object.Executable, blob}, {"c/d", object.Regular, blob}})
			if err != nil {
				return
			}
			nodes := must(r.nodes(edited))
			for i := range nodes[1:] {
				if compareNodes(nodes[i], nodes[i+1]) >= 0 {
					t.Errorf("%q stands before %q", nodes[i].name, nodes[i+1].name)
				}
			}
		})
	}
}

// TestHostileObjects reads objects that are damaged in the repository or not there.
func TestHostileObjects(t *testing.T) {
	r, peer := newRepository(t)
	blob := peer.id("content", "hash-object", "-w", "--stdin")
	broken := func(id object.ID, content []byte) object.ID {
		path := filepath.Join(r.dir, "objects", id.String()[:2], id.String()[2:])
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.RemoveAll(path), os.WriteFile(path, content, 0o600)); err != nil {
			t.Fatal(err)
		}
		return id
	}
	whole := must(os.ReadFile(filepath.Join(r.dir, "objects", blob.String()[:2], blob.String()[2:])))
	numbered := func(digits string) object.ID { return parse(t, strings.Repeat(digits, 20)) }
	for name, row := range map[string]struct {
		id   object.ID
		want error
	}{
		"not there":       {numbered("12"), ErrMissing},
		"zero":            {object.ID{}, ErrMissing},
		"empty":           {broken(numbered("a1"), nil), ErrDamaged},
		"of another id":   {broken(numbered("a2"), whole), ErrDamaged},
		"cut off":         {broken(numbered("a3"), whole[:len(whole)/2]), ErrDamaged},
		"not deflated":    {broken(numbered("a4"), []byte("blob 7\x00content")), ErrDamaged},
		"bytes after it":  {broken(numbered("a5"), bytes.Repeat([]byte{0x78, 0x01}, 99)), ErrDamaged},
		"a cut off blob ": {broken(blob, whole[:len(whole)-6]), ErrDamaged},
	} {
		for what, err := range map[string]error{
			"Content":  failure(r.Content(row.id)),
			"Describe": failure(r.Describe(row.id)),
			"CommitOf": failure(r.CommitOf(row.id)),
			"Contains": failure(r.Contains(row.id, row.id)),
		} {
			if !errors.Is(err, row.want) && !errors.Is(err, ErrNotCommit) {
				t.Errorf("%s: %s: %v, want %v", name, what, err, row.want)
			}
		}
	}
}

func failure[T any](_ T, err error) error { return err }

// TestHostileCommits reads commits of which more or less is wrong.
func TestHostileCommits(t *testing.T) {
	r, _ := newRepository(t)
	tree := must(r.putTree(nil)).String()
	good := "tree " + tree + "\n"
	for content, wrong := range map[string]bool{
		"": true, "\n": true, "tree ": true, "tree " + tree: true, "tree x\n": true, "tree " + tree + "0\n": true,
		"author a <b> 1 +0000\n": true, good + "parent x\n": true, good + "parent " + tree: true,
		good: false, good + "\n": false, good + "author": false, good + "author \n\nx": false,
		good + "author a\ncommitter <\n\n": false, good + "author a <b> x\n": false, good + "author a <b> 1 x\n": false,
		good + "author a <b> 99999999999999999999 +0000\n": false, good + "author a <b> -1 +9999\n": false,
		good + "author a <b> 1 -99999999\n": false, good + "\x00\xff\x00": false, good + "author >< 1 1\n": false,
	} {
		id, err := r.put(git.ObjectCommit, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		d, err := r.Describe(id)
		if (err != nil) != wrong || wrong && (!errors.Is(err, ErrMalformed) || IsBroken(err)) {
			t.Errorf("%q: %+v, %v", content, d, err)
		}
	}
}

func FuzzTree(f *testing.F) {
	f.Add([]byte("100644 a\x0012345678901234567890"))
	f.Add([]byte("40000 \xff\x0012345678901234567890100644 b\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		nodes, err := parseTree(content)
		var again []byte
		for _, n := range nodes {
			again = append(again, n.raw...)
		}
		if err == nil && !bytes.Equal(again, content) {
			t.Errorf("%q is read as %q", content, again)
		}
	})
}

func FuzzCommit(f *testing.F) {
	f.Add([]byte("tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nparent 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor a <b> 1 +0130\ncommitter c <d> 2 -0000\n\nx"))
	f.Fuzz(func(t *testing.T, content []byte) {
		d, err := parseCommit(content)
		if err != nil {
			return
		}
		for _, s := range []Signature{d.Author, d.Committer} {
			if text, err := s.encode(); err == nil && strings.ContainsAny(text, "\n\x00") {
				t.Errorf("%q is written back as %q", content, text)
			}
		}
	})
}

func FuzzModules(f *testing.F) {
	for _, content := range moduleFiles()[:40] {
		f.Add([]byte(content))
	}
	f.Fuzz(func(_ *testing.T, content []byte) { _ = checkModules(content) })
}
