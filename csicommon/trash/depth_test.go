package trash

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"liken.sh/csicommon/descent"
)

// TestAnyDepthInBoundedMemory: each level that a descent is in costs memory, so
// it must not be in more of them than the bound.
func TestAnyDepthInBoundedMemory(t *testing.T) {
	for _, row := range []struct {
		name string
		put  func(p *place) error
	}{
		{"in a wrapper", func(p *place) error { return p.Bin.Put(p.dir, "v") }},
		{"without one", func(p *place) error {
			it, err := p.Bin.placeBare(p.dir, "v")
			if err == nil {
				p.Bin.release(it)
			}
			return err
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPlace(t)
			const depth = 3*deepest + 7
			chain(t, filepath.Join(p.path, "v"), depth)
			check(t, row.put(p))
			raised := 0
			for _, it := range p.Bin.due() {
				for done := false; !done; {
					pass := &pass{item: it, pace: &descent.Pace{}}
					err := p.Bin.pass(t.Context(), pass)
					if pass.failures.count > 0 || pass.deleted+pass.raised == 0 {
						t.Fatalf("%v %+v", err, pass)
					}
					raised += pass.raised
					done = err == nil
				}
				if it.name != "v" || it.inodes != depth+1 {
					t.Errorf("%q, %d inodes", it.name, it.inodes)
				}
			}
			if raised != depth/deepest {
				t.Errorf("%d subtrees were moved up", raised)
			}
			p.run(t)
			p.emptied(t)
		})
	}
}

// TestADeepTreeIsNoFailure: a file system that does not show, in a directory that
// is being read, what was moved there meanwhile makes it take many passes.
func TestADeepTreeIsNoFailure(t *testing.T) {
	for _, row := range []struct {
		name                   string
		raised, deleted, round int
		want                   int
	}{
		{"moved up", 1, 0, 1, again},
		{"moved up, for the last time in a row", 1, 5, passes, othersFirst},
		{"deleted", 0, 1, 1, again},
		{"deleted, for the last time in a row", 0, 1, passes, waitFirst},
		{"nothing could be done", 0, 0, 1, waitFirst},
	} {
		if got := (&pass{raised: row.raised, deleted: row.deleted}).next(row.round); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
}

// TestARestartKnowsAnItemByWhatWasMovedUp: of an item whose top is deleted
// already, only moved parts may be left.
func TestARestartKnowsAnItemByWhatWasMovedUp(t *testing.T) {
	p := newPlace(t)
	check(t, os.Mkdir(filepath.Join(p.path, "v"), 0o755))
	check(t, p.Bin.Put(p.dir, "v"))
	at, err := filepath.Glob(p.bin + "/.*/v")
	check(t, err)
	check(t, unix.Rename(at[0], filepath.Join(filepath.Dir(at[0]), bareName("v"))))
	p.reopen(t)
	p.run(t)
	p.emptied(t)
	until(t, "it is told", func() bool { return len(p.all()) == 1 })
	if got := p.all()[0].Name; got != "v" {
		t.Errorf("removed %q", got)
	}
}
