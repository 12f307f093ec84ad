package history

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"liken.sh/gitvolume/internal/object"
)

// TestEditAgainstGit makes random changes to random trees, and has git make them to
// its index: the trees have to have the same ids, so the same bytes (C24).
func TestEditAgainstGit(t *testing.T) {
	t.Parallel()
	r, peer := newRepository(t)
	names := rapid.SampledFrom([]string{"config", "config.txt", "config0", "config-x", "config ", "a", "A", "-rf", "nl\nx", "\xff\xfe", "q\"u'o", strings.Repeat("n", 255)})
	modes := []object.Mode{object.Regular, object.Executable, object.Symlink, object.Submodule}
	rapid.Check(t, func(t *rapid.T) {
		tree := object.ID{}
		model := map[string]Change{}
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			changes := map[string]Change{}
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				path := strings.Join(rapid.SliceOfN(names, 1, 4).Draw(t, "path"), "/")
				change := Change{Path: path}
				if rapid.IntRange(0, 2).Draw(t, "kind") > 0 {
					change.Mode = rapid.SampledFrom(modes).Draw(t, "mode")
					change.Blob = must(r.Blob([]byte{byte(rapid.IntRange(0, 3).Draw(t, "content"))}))
				}
				changes[path] = change
			}
			dropImpossible(changes)
			tree = must(r.Edit(tree, slices.Collect(maps.Values(changes))))
			applyTo(model, changes)
			if want, got := indexed(peer, model), tree; want != got {
				t.Fatalf("got the tree %s, git has %s", got, want)
			}
			if (len(model) == 0) != tree.IsZero() {
				t.Fatalf("the tree of %d files is %s", len(model), tree)
			}
		}
		if tree.IsZero() {
			return
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if got, want := listed(t, r, "", tree), peer.run("ls-tree", "-r", "-z", tree.String()); got != want {
			t.Fatalf("listed\n%q\ngit lists\n%q", got, want)
		}
	})
	peer.fsck()
}

// dropImpossible removes the changes that make something below a changed file.
func dropImpossible(changes map[string]Change) {
	for path, change := range changes {
		for at := range path {
			if above, ok := changes[path[:at]]; ok && path[at] == '/' && above.Mode != 0 && change.Mode != 0 {
				delete(changes, path)
			}
		}
	}
}

// applyTo makes the changes to a model of a tree, which maps paths of files.
func applyTo(model map[string]Change, changes map[string]Change) {
	for path, change := range changes {
		if change.Mode == 0 {
			maps.DeleteFunc(model, func(p string, _ Change) bool { return p == path || strings.HasPrefix(p, path+"/") })
		}
	}
	for path, change := range changes {
		if change.Mode != 0 {
			maps.DeleteFunc(model, func(p string, _ Change) bool {
				return strings.HasPrefix(p, path+"/") || strings.HasPrefix(path, p+"/")
			})
		}
	}
	for path, change := range changes {
		if change.Mode != 0 {
			model[path] = change
		}
	}
}

// indexed is the tree that git makes of the files, through its index.
func indexed(peer *peer, model map[string]Change) object.ID {
	var lines strings.Builder
	for path, change := range model {
		fmt.Fprintf(&lines, "%s %s\t%s\x00", change.Mode, change.Blob, path)
	}
	if err := os.RemoveAll(filepath.Join(peer.dir, "index")); err != nil {
		peer.t.Fatal(err)
	}
	peer.feed(lines.String(), "update-index", "-z", "--index-info")
	id := peer.id("", "write-tree", "--missing-ok")
	if len(model) == 0 {
		return object.ID{}
	}
	return id
}

// listed is the tree as git ls-tree -r -z prints it.
func listed(t *rapid.T, r *Repository, prefix string, tree object.ID) string {
	var lines strings.Builder
	for _, entry := range must(r.Entries(tree)) {
		path := prefix + entry.Name
		kind := "blob"
		switch entry.Mode {
		case object.Directory:
			lines.WriteString(listed(t, r, path+"/", entry.ID))
			continue
		case object.Submodule:
			kind = "commit"
		}
		fmt.Fprintf(&lines, "%s %s %s\t%s\x00", entry.Mode, kind, entry.ID, path)
		if found := must(r.Find(tree, path[len(prefix):])); found.ID != entry.ID {
			t.Fatalf("found %v at %q, want %v", found, path, entry)
		}
	}
	return lines.String()
}

func TestEditImpossible(t *testing.T) {
	r, peer := newRepository(t)
	blob := must(r.Blob([]byte("x")))
	tree := must(r.Edit(object.ID{}, []Change{{"f", object.Regular, blob}}))
	set := func(paths ...string) (changes []Change) {
		for _, path := range paths {
			changes = append(changes, Change{path, object.Regular, blob})
		}
		return changes
	}
	missing := parse(t, strings.Repeat("12", 20))
	for name, row := range map[string]struct {
		changes []Change
		want    error
	}{
		"a file and one below it":       {set("x", "x/y"), ErrImpossible},
		"a file and one far below it":   {set("d/x", "d/x/y/z", "d/x-"), ErrImpossible},
		"a path twice":                  {set("x", "y", "x"), ErrImpossible},
		"a path set and removed":        {append(set("x"), Change{Path: "x"}), ErrImpossible},
		"a submodule and a file":        {append(set("s/f"), Change{"s", object.Submodule, blob}), ErrImpossible},
		"a tree and a file in it":       {append(set("s/f"), Change{"s", object.Directory, tree}), ErrImpossible},
		"an odd mode":                   {[]Change{{"x", 0o100664, blob}}, ErrImpossible},
		"a submodule of nothing":        {[]Change{{"x", object.Submodule, object.ID{}}}, ErrImpossible},
		"a tree as a file":              {[]Change{{"x", object.Regular, tree}}, ErrMalformed},
		"a file as a tree":              {[]Change{{"x", object.Directory, blob}}, ErrMalformed},
		"a blob that is not there":      {[]Change{{"x", object.Regular, missing}}, ErrMissing},
		"no path":                       {set(""), ErrName},
		"an empty part":                 {set("x//y"), ErrName},
		"a slash at the end":            {set("x/"), ErrName},
		"a slash at the begin":          {set("/x"), ErrName},
		"..":                            {set("x/../y"), ErrName},
		".git":                          {set("x/.GIT/y"), ErrName},
		".gitmodules as a symlink":      {[]Change{{"x/.gitmodules", object.Symlink, blob}}, ErrName},
		".gitmodules as a directory":    {set(".gitmodules/x"), ErrName},
		".gitattributes as a directory": {set(".gitAttributes/x"), ErrName},
		"NUL":                           {set("x\x00y"), ErrName},
		"a path far too deep":           {set(strings.Repeat("d/", 5000) + "x"), ErrTooLarge},
	} {
		if got, err := r.Edit(tree, row.changes); !errors.Is(err, row.want) || !got.IsZero() {
			t.Errorf("%s: got %s, %v, want the error %v", name, got, err, row.want)
		}
	}
	if got := must(r.Edit(tree, nil)); got != tree {
		t.Errorf("no change made %s of %s", got, tree)
	}
	if got := must(r.Edit(tree, []Change{{Path: "g"}, {Path: "f/x/y"}, {Path: "d/e"}})); got != tree {
		t.Errorf("removing what is not there made %s of %s", got, tree)
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	peer.fsck()
}

// TestEditKeepsOthers changes one entry beside ones that git would not write today.
func TestEditKeepsOthers(t *testing.T) {
	r, peer := newRepository(t)
	blob := must(r.Blob([]byte("x")))
	odd := "100664 old\x00" + string(blob[:]) + "100600 other\x00" + string(blob[:])
	tree := peer.id(odd, "hash-object", "-t", "tree", "-w", "--literally", "--stdin")
	got := must(r.Edit(tree, []Change{{"new", object.Executable, blob}}))
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	want := "100755 new\x00" + string(blob[:]) + odd
	if raw := peer.run("cat-file", "tree", got.String()); raw != want {
		t.Errorf("got the tree\n%q\nwant\n%q", raw, want)
	}
	if found := must(r.Find(got, "old")); found.Mode != object.Regular {
		t.Errorf("an old mode is read as %s", found.Mode)
	}
}

func TestEditDirectory(t *testing.T) {
	r, peer := newRepository(t)
	sub := must(r.Edit(object.ID{}, []Change{file(t, r, "x/y", "1")}))
	tree := must(r.Edit(object.ID{}, []Change{{"d", object.Directory, sub}, {Path: "d/x"}, file(t, r, "e", "2")}))
	if found := must(r.Find(tree, "d/x/y")); found.Mode != object.Regular {
		t.Errorf("found %v in the directory", found)
	}
	empty := peer.id("", "hash-object", "-t", "tree", "-w", "--stdin")
	if got := must(r.Edit(tree, []Change{{"d", object.Directory, empty}, {Path: "e"}})); !got.IsZero() {
		t.Errorf("an empty directory was kept in %s", got)
	}
}

// TestLargeDirectory has git read a directory that is stored as it is.
func TestLargeDirectory(t *testing.T) {
	r, peer := newRepository(t)
	var changes []Change
	for i := range 3000 {
		changes = append(changes, file(t, r, fmt.Sprintf("d/file-%05d", i), fmt.Sprint(i%7)))
	}
	tip := commit(t, r, must(r.Edit(object.ID{}, changes)))
	pending := len(must(r.Entries(must(r.Find(must(r.CommitTree(tip)), "d")).ID)))
	if err := r.SetRef("refs/heads/main", tip, object.ID{}); err != nil {
		t.Fatal(err)
	}
	if listed := strings.Count(peer.run("ls-tree", "-r", "main"), "\n") + 1; listed != 3000 || pending != 3000 {
		t.Errorf("git sees %d files, and before they were written there are %d", listed, pending)
	}
	peer.fsck()
}
