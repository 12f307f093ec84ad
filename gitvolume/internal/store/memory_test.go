package store

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	for _, of := range []Remembered{{}, asOf("1"), {Metadata: id("2")}} {
		f.must(f.store.SaveMemory("v", of, aMemory()))
		f.restart()
		found, memory, err := f.store.LoadMemory("v")
		f.must(err)
		if found != of {
			t.Errorf("it is of %s, want %s", found, of)
		}
		if got, want := maps.Collect(memory.All()), maps.Collect(aMemory().All()); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// asOf is of commits of that digit and of the one before.
func asOf(digit string) Remembered {
	return Remembered{Tip: id(digit), Metadata: id(string(digit[0] - 1))}
}

// remembers expects a memory of those commits.
func (f *fixture) remembers(of Remembered) {
	f.t.Helper()
	found, _, err := f.store.LoadMemory("v")
	f.must(err)
	if found != of {
		f.t.Errorf("it is of %s, want %s", found, of)
	}
}

// ofOneCommit makes a memory one as it was written before it had the record's commit.
func ofOneCommit(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	end := len(memoryWord) + 2*object.IDSize
	return os.WriteFile(path, slices.Delete(text, end, end+1+2*object.IDSize), 0o600)
}

func TestMemoryThatIsNone(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"missing":           os.Remove,
		"empty":             func(path string) error { return os.Truncate(path, 0) },
		"cut in its line":   func(path string) error { return os.Truncate(path, 20) },
		"cut in its second": func(path string) error { return os.Truncate(path, 60) },
		"cut after it":      func(path string) error { return os.Truncate(path, 100) },
		"its end is zeros":  func(path string) error { return errors.Join(os.Truncate(path, 130), os.Truncate(path, 240)) },
		"of one commit":     ofOneCommit,
		"a link to another": func(path string) error { return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.volume("v")
			f.must(f.store.SaveMemory("v", asOf("1"), aMemory()))
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
	if err := f.store.SaveMemory("v", asOf("1"), aMemory()); err == nil {
		t.Error("a memory without a volume was saved")
	}
}
