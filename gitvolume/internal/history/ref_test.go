package history

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

func TestSetRef(t *testing.T) {
	r, peer := newRepository(t)
	one := commit(t, r, object.ID{})
	two := commit(t, r, object.ID{}, one)
	const name = "refs/git-csi/deep/er/main"
	step := func(what string, err, wanted error, ref object.ID) {
		t.Helper()
		if !errors.Is(err, wanted) {
			t.Errorf("%s: got %v, want the error %v", what, err, wanted)
		}
		got, err := r.Ref(name)
		if got != ref || ref.IsZero() != errors.Is(err, ErrNoRef) {
			t.Errorf("%s: the ref is %s, %v, want %s", what, got, err, ref)
		}
		out, _ := peer.try("", "rev-parse", "--verify", "-q", name)
		want := ref.String()
		if ref.IsZero() {
			want = ""
		}
		if out = strings.TrimSpace(out); out != want {
			t.Errorf("%s: git says %q, want %q", what, out, want)
		}
	}
	step("nothing there", nil, nil, object.ID{})
	step("move what is not there", r.SetRef(name, two, one), ErrRefMoved, object.ID{})
	step("delete what is not there", r.DeleteRef(name, one), ErrNoRef, object.ID{})
	step("make", r.SetRef(name, one, object.ID{}), nil, one)
	step("make again", r.SetRef(name, two, object.ID{}), ErrRefMoved, one)
	step("move from another", r.SetRef(name, two, two), ErrRefMoved, one)
	step("move", r.SetRef(name, two, one), nil, two)
	step("delete another", r.DeleteRef(name, one), ErrRefMoved, two)
	peer.run("pack-refs", "--all")
	step("make what is packed", r.SetRef(name, one, object.ID{}), ErrRefMoved, two)
	step("move what is packed", r.SetRef(name, one, two), nil, one)
	peer.run("pack-refs", "--all")
	step("delete what is packed", r.DeleteRef(name, one), nil, object.ID{})
	step("make after all", r.SetRef(name, one, object.ID{}), nil, one)
	step("an object that is not there", r.SetRef(name, parse(t, strings.Repeat("12", 20)), one), ErrMissing, one)
	peer.fsck()
}

// TestRefShapes changes which refs are directories of others, loose and packed (C39).
func TestRefShapes(t *testing.T) {
	for name, pack := range map[string]bool{"loose": false, "packed": true} {
		t.Run(name, func(t *testing.T) {
			r, peer := newRepository(t)
			id := commit(t, r, object.ID{})
			names := []string{"refs/heads/feature", "refs/heads/feature/foo", "refs/heads/feature", "refs/heads/feature/foo/bar", "refs/heads/feature"}
			for i, name := range names {
				if i > 0 {
					if err := r.SetRef(name, id, object.ID{}); !errors.Is(err, ErrRefCollision) {
						t.Errorf("%s beside %s: %v", name, names[i-1], err)
					}
					if err := r.DeleteRef(names[i-1], id); err != nil {
						t.Fatal(err)
					}
				}
				if err := r.SetRef(name, id, object.ID{}); err != nil {
					t.Fatal(err)
				}
				if pack {
					peer.run("pack-refs", "--all")
				}
				refs, err := r.Refs("refs/heads/")
				if err != nil || len(refs) != 1 || refs[0] != (NamedRef{name, id}) {
					t.Errorf("the refs are %v, %v, want %s", refs, err, name)
				}
			}
		})
	}
}

func TestRefs(t *testing.T) {
	r, peer := newRepository(t)
	id := commit(t, r, object.ID{})
	for _, name := range []string{"refs/heads/a", "refs/heads/b/c", "refs/tags/a", "refs/git-csi/metadata"} {
		if err := r.SetRef(name, id, object.ID{}); err != nil {
			t.Fatal(err)
		}
	}
	peer.run("symbolic-ref", "refs/heads/symbolic", "refs/heads/a")
	peer.run("symbolic-ref", "HEAD", "refs/heads/a")
	if got, err := r.Ref("HEAD"); err != nil || got != id {
		t.Errorf("HEAD is %s, %v", got, err)
	}
	for prefix, want := range map[string]int{"": 4, "refs/heads/": 2, "refs/tags/a": 1, "refs/[a-z]*/": 0, "refs/none": 0} {
		if refs, err := r.Refs(prefix); err != nil || len(refs) != want {
			t.Errorf("the refs of %q are %v, %v, want %d", prefix, refs, err, want)
		}
	}
}

func TestRefLocked(t *testing.T) {
	r, _ := newRepository(t)
	id := commit(t, r, object.ID{})
	lock := filepath.Join(r.dir, "refs", "heads", "main.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.SetRef("refs/heads/main", id, object.ID{}); !errors.Is(err, ErrRefLocked) {
		t.Errorf("a locked ref: %v", err)
	}
	if err := r.SetRef("refs/heads/other", id, object.ID{}); err != nil {
		t.Errorf("a ref beside a locked one: %v", err)
	}
}

func TestRefDamaged(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "zeros": strings.Repeat("\x00", 41), "garbage": "garbage\n", "short": "1234\n"} {
		t.Run(name, func(t *testing.T) {
			r, _ := newRepository(t)
			id := commit(t, r, object.ID{})
			if err := os.WriteFile(filepath.Join(r.dir, "refs", "heads", "main"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := r.Ref("refs/heads/main"); !errors.Is(err, ErrRefDamaged) {
				t.Errorf("read %s, %v", got, err)
			}
			if err := r.SetRef("refs/heads/other", id, object.ID{}); err != nil {
				t.Error(err)
			}
			if refs, err := r.Refs("refs/"); err != nil || len(refs) != 1 {
				t.Errorf("the refs are %v, %v", refs, err)
			}
		})
	}
}

// TestCheckRef compares with git, which knows no length.
func TestCheckRef(t *testing.T) {
	_, peer := newRepository(t)
	for name, want := range map[string]bool{
		"refs/heads/main": true, "refs/heads/-rf": true, "refs/heads/a/b/c": true, "refs/heads/\xff": true,
		"refs/heads/a b": false, "refs/heads/": false, "refs/heads//a": false, "refs/heads/a.lock": false,
		"refs/heads/.a": false, "refs/heads/a..b": false, "refs/heads/a@{b": false, "refs/heads/@": true,
		"refs/heads/a~": false, "refs/heads/a^": false, "refs/heads/a:": false, "refs/heads/a?": false,
		"refs/heads/a*": false, "refs/heads/[a": false, "refs/heads/a\\b": false, "refs/heads/a\x7f": false,
		"refs/heads/a\n": false, "refs/heads/a.": false, "refs/heads/a.lock/b": false, "refs/x": true,
		"refs/heads/" + strings.Repeat("n", 250): true,
	} {
		if err := CheckRef(name); (err == nil) != want || err != nil && !errors.Is(err, ErrRefName) {
			t.Errorf("CheckRef(%q) = %v, want it right: %v", name, err, want)
		}
		if _, err := peer.try("", "check-ref-format", name); (err == nil) != want {
			t.Errorf("git's answer to %q is %v", name, err)
		}
	}
	for _, name := range []string{
		"", "HEAD", "main", "refs/heads/a\x00b", "-x", "../refs/heads/a", "heads/main",
		"refs/heads/" + strings.Repeat("n", 251), "refs/heads/" + strings.Repeat("n/", 2000) + "n",
	} {
		if err := CheckRef(name); !errors.Is(err, ErrRefName) {
			t.Errorf("CheckRef(%q) = %v", name, err)
		}
	}
}

// TestRefsStayFiles has git look after the repository: it must not pack refs, beside
// which libgit2 is not safe.
func TestRefsStayFiles(t *testing.T) {
	r, peer := newRepository(t)
	if err := r.SetRef("refs/heads/main", commit(t, r, object.ID{}), object.ID{}); err != nil {
		t.Fatal(err)
	}
	peer.run("gc", "-q")
	if !exists(filepath.Join(r.dir, "refs", "heads", "main")) || exists(filepath.Join(r.dir, "packed-refs")) {
		t.Error("git has packed the refs")
	}
}
