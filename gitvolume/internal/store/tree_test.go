package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/storedir"
)

func TestTreeIsTheOneOfTheRecord(t *testing.T) {
	for name, row := range map[string]struct {
		replace func(tree string) error
		want    error
	}{
		"as it was":                     {func(string) error { return nil }, nil},
		"with other content and mode":   {func(tree string) error { return errors.Join(os.Remove(tree+"/file"), os.Chmod(tree, 0o770)) }, nil},
		"renamed and back":              {func(tree string) error { return errors.Join(os.Rename(tree, tree+"2"), os.Rename(tree+"2", tree)) }, nil},
		"gone":                          {func(tree string) error { return os.Rename(tree, tree+"2") }, ErrNoTree},
		"another directory of the name": {func(tree string) error { return errors.Join(os.Rename(tree, tree+"2"), os.Mkdir(tree, 0o777)) }, ErrOtherTree},
		"a link to what it was":         {func(tree string) error { return errors.Join(os.Rename(tree, tree+"2"), os.Symlink(tree+"2", tree)) }, storedir.ErrNotADirectory},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			r := f.volume("v")
			f.must(row.replace(f.store.TreeDir("v")))
			f.restart()
			if err := f.store.CheckTree(r); !errors.Is(err, row.want) || err != nil && row.want == nil {
				t.Errorf("error %v, want %v", err, row.want)
			}
		})
	}
}

// A file system gives the number of a directory that was deleted to the next one.
func TestTreeThatTookTheInodeOfAnother(t *testing.T) {
	f := newFixture(t)
	r := f.volume("v")
	if r.Position.Tree.Born == 0 {
		t.Skip("the file system does not record when a directory was made")
	}
	r.Position.Tree.Born--
	f.wants(f.store.CheckTree(r), ErrOtherTree)
}

func TestMakeTree(t *testing.T) {
	f := newFixture(t)
	f.must(f.store.Save(aRecord("v")))
	first, err := f.store.MakeTree("v", 0o777)
	f.must(err)
	again, err := f.store.MakeTree("v", 0o777) // A crash came before the record was saved.
	f.must(err)
	if first != again || first == (Identity{}) {
		t.Errorf("%v and then %v", first, again)
	}
	f.write("x", volumesDir, "v", treeName, "file")
	_, err = f.store.MakeTree("v", 0o777)
	f.wants(err, fs.ErrExist)
	victim := t.TempDir()
	f.must(f.store.Save(aRecord("link")))
	f.must(os.Symlink(victim, f.store.TreeDir("link")))
	_, err = f.store.MakeTree("link", 0o777)
	f.wants(err, storedir.ErrNotADirectory)
	if info, err := os.Stat(victim); err != nil || info.Mode().Perm() == 0o777 {
		t.Errorf("the link was followed: %v, %v", info.Mode(), err)
	}
	_, err = f.store.MakeTree("no-record", 0o777)
	f.wants(err, fs.ErrNotExist)
	_, err = f.store.MakeTree("../v", 0o777)
	f.wants(err, handle.ErrInvalid)
}

func TestSetAsideTree(t *testing.T) {
	f := newFixture(t)
	longest := strings.Repeat("v", handle.MaxLength)
	for range 5 { // None of them goes by itself.
		f.volume(longest)
		path, err := f.store.SetAsideTree(longest, "it is not the one")
		f.must(err)
		if text, err := os.ReadFile(filepath.Join(path, "file")); err != nil || string(text) != "content" {
			t.Errorf("%q, %v", text, err)
		}
		why, err := os.ReadFile(filepath.Join(filepath.Dir(path), aboutFile))
		if err != nil || !strings.Contains(string(why), longest) || !strings.Contains(string(why), "it is not the one") {
			t.Errorf("%s, %v", why, err)
		}
		_, err = f.store.Tree(longest)
		f.wants(err, ErrNoTree)
		f.restart()
	}
	if n := f.glob(asideDir + "/*/tree/file"); n != 5 {
		t.Errorf("%d are there", n)
	}
	if _, err := f.store.SetAsideTree(longest, ""); err == nil {
		t.Error("a tree that is not there was set aside")
	}
}
