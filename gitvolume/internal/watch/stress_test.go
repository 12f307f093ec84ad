package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// TestHintsLeadToTheTree plays what applications do, in any order and as fast as it
// goes, while the owner follows hints.
func TestHintsLeadToTheTree(t *testing.T) {
	for range 8 { // Most of the time is waiting.
		t.Run("", func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, hintsLeadToTheTree)
		})
	}
}

func hintsLeadToTheTree(r *rapid.T) {
	dir, err := os.MkdirTemp("", "watch")
	if err != nil {
		r.Fatalf("%v", err)
	}
	defer os.RemoveAll(dir)
	p := play{root: filepath.Join(dir, "root"), outside: filepath.Join(dir, "outside")}
	for _, made := range []string{p.root, p.outside} {
		if err := os.Mkdir(made, 0o755); err != nil {
			r.Fatalf("%v", err)
		}
	}
	p.run(r, rapid.IntRange(0, 20).Draw(r, "before"))
	o := start(r, New(), p.root)
	defer o.w.Stop()
	// Each round's changes may meet a look, or come all before one.
	for range rapid.IntRange(1, 4).Draw(r, "rounds") {
		p.run(r, rapid.IntRange(1, 40).Draw(r, "changes"))
		if rapid.Bool().Draw(r, "look") {
			o.follow()
		}
	}
	for round := 0; ; round++ {
		o.calm()
		// The watches are right now: each change has an event that leads to it.
		for path, e := range tree(p.root) {
			if e.isDir() {
				_ = os.WriteFile(filepath.Join(p.root, path, "last"), []byte(p.next()), 0o644)
			}
		}
		o.converge()
		switch {
		case o.whole == 0:
			return
		case round == 5: // Some time the last event of the changes before has come.
			r.Fatalf("looked at everything for changes of files; last hints %s", o.last())
		}
	}
}

// play changes a tree. Most changes fail, for want of what they need; that is fine.
type play struct {
	root, outside string
	count         int
}

func (p *play) run(r *rapid.T, changes int) {
	name := rapid.SampledFrom([]string{"a", "b", "c", "a/a", "a/b", "b/a", "b/c", "a/a/a", "a/b/c", "b/c/a/b", "c/\xff\n..."})
	kinds := []func(path, other string){
		p.write, p.write, p.replace, p.mkdir, p.mkdir, p.deep, p.remove, p.removeAll,
		p.rename, p.rename, p.exchange, p.moveOut, p.moveIn, p.link, p.chmod, p.remake, p.swap,
	}
	for range changes {
		kind := rapid.IntRange(0, len(kinds)-1).Draw(r, "kind")
		path, other := name.Draw(r, "path"), name.Draw(r, "other")
		kinds[kind](filepath.Join(p.root, path), filepath.Join(p.root, other))
	}
}

func (p *play) next() string { p.count++; return fmt.Sprint(p.count) }

func (p *play) write(path, _ string)      { _ = os.WriteFile(path, []byte(p.next()), 0o644) }
func (p *play) mkdir(path, _ string)      { _ = os.MkdirAll(path, 0o755) }
func (p *play) remove(path, _ string)     { _ = os.Remove(path) }
func (p *play) removeAll(path, _ string)  { _ = os.RemoveAll(path) }
func (p *play) rename(path, other string) { _ = os.Rename(path, other) }
func (p *play) link(path, _ string)       { _ = os.Symlink("a", path) }
func (p *play) chmod(path, _ string)      { _ = os.Chmod(path, os.FileMode(0o700|p.count&0o77)); p.count++ }

func (p *play) replace(path, _ string) {
	p.write(path+".tmp", "")
	_ = os.Rename(path+".tmp", path)
}

func (p *play) deep(path, _ string) {
	_ = os.MkdirAll(filepath.Join(path, "d/e/f"), 0o755)
	p.write(filepath.Join(path, "d/e/f/g"), "")
	p.write(filepath.Join(path, "d/h"), "")
}

func (p *play) exchange(path, other string) {
	_ = unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
}

func (p *play) moveOut(path, _ string) { _ = os.Rename(path, filepath.Join(p.outside, p.next())) }

func (p *play) moveIn(path, _ string) {
	made := filepath.Join(p.outside, p.next())
	p.deep(made, "")
	_ = os.Rename(made, path)
}

// remake removes a directory and makes it again, some times.
func (p *play) remake(path, _ string) {
	for range 3 {
		_ = os.RemoveAll(path)
		_ = os.Mkdir(path, 0o755)
	}
	p.write(filepath.Join(path, "f"), "")
}

// swap puts a new directory in the place of another, which is kept, as deployments do.
func (p *play) swap(path, other string) {
	p.deep(other+".new", "")
	_ = os.Rename(path, path+".old")
	_ = os.Rename(other+".new", path)
	p.write(filepath.Join(path, "swapped"), "")
}
