package store

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/worktree"
)

func aMemory() *worktree.Memory {
	var none *worktree.Memory
	return none.With([]worktree.Edit{{Path: "d/file", Entry: worktree.Entry{Mode: object.Regular, Blob: id("9"), Stat: worktree.Stat{Size: 3, Inode: 7}}}})
}

func TestMemoryComesBack(t *testing.T) {
	f := newFixture(t)
	f.volume("v")
	for _, commit := range []object.ID{{}, id("1")} {
		f.must(f.store.SaveMemory("v", commit, aMemory()))
		f.restart()
		found, memory, err := f.store.LoadMemory("v")
		f.must(err)
		if found != commit {
			t.Errorf("it is of %s, want %s", found, commit)
		}
		if got, want := maps.Collect(memory.All()), maps.Collect(aMemory().All()); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// remembers expects a memory of that commit.
func (f *fixture) remembers(commit object.ID) {
	f.t.Helper()
	found, _, err := f.store.LoadMemory("v")
	f.must(err)
	if found != commit {
		f.t.Errorf("it is of %s, want %s", found, commit)
	}
}

func TestMemoryThatIsNone(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"missing":           os.Remove,
		"empty":             func(path string) error { return os.Truncate(path, 0) },
		"cut in its line":   func(path string) error { return os.Truncate(path, 20) },
		"cut after it":      func(path string) error { return os.Truncate(path, 60) },
		"its end is zeros":  func(path string) error { return errors.Join(os.Truncate(path, 90), os.Truncate(path, 200)) },
		"a link to another": func(path string) error { return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.volume("v")
			f.must(f.store.SaveMemory("v", id("1"), aMemory()))
			f.must(spoil(filepath.Join(f.dir, volumesDir, "v", memoryFile)))
			_, memory, err := f.store.LoadMemory("v")
			if memory != nil {
				t.Error("there is a memory")
			}
			f.wants(err, ErrNoMemory)
		})
	}
	f := newFixture(t)
	_, _, err := f.store.LoadMemory("v")
	f.wants(err, ErrNoMemory)
	if err := f.store.SaveMemory("v", id("1"), aMemory()); err == nil {
		t.Error("a memory without a volume was saved")
	}
}
