package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// TestLeaks makes 10,000 commits with one handle: neither memory nor descriptors may
// grow with their number, of libgit2's objects neither.
func TestLeaks(t *testing.T) {
	r, peer := newRepository(t)
	// Both are more packs than after which the repository is opened again.
	commits, warm, flushEach, repackEach := 10_000, 2_100, 150, 3_000
	if raced {
		commits, warm, flushEach, repackEach = 1_500, 600, 20, 1_000
	}
	tree, tip, named := object.ID{}, object.ID{}, object.ID{}
	var memory int64
	descriptors := 0
	for n := 1; n <= commits; n++ {
		tree = must(r.Edit(tree, []Change{file(t, r, fmt.Sprintf("d%d/f%d", n%7, n%50), fmt.Sprint(n))}))
		tip = commit(t, r, tree, parentsOf(tip)...)
		_ = must(r.Describe(tip))
		_ = must(r.Find(tree, fmt.Sprintf("d%d/f%d", n%7, n%50)))
		if n%flushEach != 0 {
			continue
		}
		if err := r.SetRef("refs/heads/main", tip, named); err != nil {
			t.Fatal(err)
		}
		named = tip
		_ = must(r.Refs("refs/"))
		_ = must(r.Diff(object.ID{}, tree))
		if n%repackEach == 0 { // As the driver has git do.
			peer.run("repack", "-q", "-d", "--geometric=2")
		}
		if n == warm {
			debug.FreeOSMemory()
			memory, descriptors = resident(t, "VmRSS:"), openFiles(t)
		}
	}
	debug.FreeOSMemory()
	if grown := resident(t, "VmRSS:") - memory; grown > 24<<20 {
		t.Errorf("%d commits grew the process by %d bytes", commits-warm, grown)
	}
	if now := openFiles(t); now > descriptors+20 {
		t.Errorf("%d descriptors are open, %d were after %d commits", now, descriptors, warm)
	}
	if own := must(r.Own(object.ID{}, tip)); len(own) != commits {
		t.Errorf("there are %d commits", len(own))
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	return len(must(os.ReadDir("/proc/self/fd")))
}

// TestRepacked has git delete packs that a handle knows, between all that it does.
func TestRepacked(t *testing.T) {
	r, peer := newRepository(t)
	other := openRepository(t, r.dir)
	tree, tip := object.ID{}, object.ID{}
	for n := range 20 {
		tree = must(r.Edit(tree, []Change{file(t, r, fmt.Sprintf("d%d/f%d", n%3, n), fmt.Sprint(n))}))
		next := commit(t, r, tree, parentsOf(tip)...)
		if err := r.SetRef("refs/heads/main", next, tip); err != nil {
			t.Fatal(err)
		}
		tip = next
		if must(other.Ref("refs/heads/main")) != tip {
			t.Error("another handle has another ref")
		}
		if n%4 == 3 {
			peer.run("gc", "-q", "--prune=now")
		}
		if n%4 == 1 {
			peer.run("repack", "-adq")
		}
		for _, handle := range []*Repository{r, other} {
			if got := must(handle.Own(object.ID{}, tip)); len(got) != n+1 {
				t.Errorf("there are %d commits of %d", len(got), n+1)
			}
			for _, d := range must(handle.Diff(object.ID{}, tree)) {
				must(handle.Content(d.To.ID))
			}
		}
	}
	peer.fsck()
	// What is not reachable was pruned; it is written again when it is needed.
	blob := must(r.Blob([]byte("lost")))
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	peer.run("gc", "-q", "--prune=now")
	next := commit(t, r, must(r.Edit(object.ID{}, []Change{file(t, r, "lost", "lost")})), tip)
	if err := r.SetRef("refs/heads/main", next, tip); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Content(blob); err != nil || string(got) != "lost" {
		t.Errorf("the blob is %q, %v", got, err)
	}
	peer.fsck()
}

// TestManyHandles has several handles commit to one ref, each trying again when another
// was first: no commit may be lost, and one alone may make the ref.
func TestManyHandles(t *testing.T) {
	r, peer := newRepository(t)
	const handles, each, name = 4, 8, "refs/heads/main"
	made := make([]int, handles)
	var group sync.WaitGroup
	for i := range handles {
		mine := openRepository(t, r.dir)
		group.Go(func() {
			for n := 0; n < each; {
				tip, err := mine.Ref(name)
				if err != nil && !errors.Is(err, ErrNoRef) {
					t.Error(err)
					return
				}
				tree := must(mine.Edit(object.ID{}, []Change{file(t, mine, "f", fmt.Sprint(i, n))}))
				switch err := mine.SetRef(name, commit(t, mine, tree, parentsOf(tip)...), tip); {
				case err == nil && tip.IsZero():
					made[i]++
					n++
				case err == nil:
					n++
				case !errors.Is(err, ErrRefMoved):
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	makers := 0
	for _, n := range made {
		makers += n
	}
	own := must(r.Own(object.ID{}, must(r.Ref(name))))
	if makers != 1 || len(own) != handles*each {
		t.Errorf("%d made the ref, which has %d commits of %d", makers, len(own), handles*each)
	}
	if packs := must(r.Packs()); packs < len(own) {
		t.Errorf("there are %d packs", packs)
	}
	peer.fsck()
}

// TestOneMakes has handles make the same ref at the same time: one has to do so.
func TestOneMakes(t *testing.T) {
	r, _ := newRepository(t)
	const handles, rounds = 4, 40
	var makers [rounds]atomic.Int32
	var start [rounds]sync.WaitGroup
	for i := range start {
		start[i].Add(handles)
	}
	var group sync.WaitGroup
	for i := range handles {
		mine := openRepository(t, r.dir)
		id := dated(mine, int64(i))
		if err := mine.Flush(); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			for round := range rounds {
				start[round].Done()
				start[round].Wait()
				switch err := mine.SetRef(fmt.Sprint("refs/heads/", round), id, object.ID{}); {
				case err == nil:
					makers[round].Add(1)
				case !errors.Is(err, ErrRefMoved):
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for round := range rounds {
		if n := makers[round].Load(); n != 1 {
			t.Errorf("%d handles made the ref %d", n, round)
		}
	}
}

// TestFlushAgain has no place for a pack at first.
func TestFlushAgain(t *testing.T) {
	r, peer := newRepository(t)
	first := commit(t, r, must(r.Edit(object.ID{}, []Change{file(t, r, "f", "1")})))
	packs, away := filepath.Join(r.dir, "objects", "pack"), filepath.Join(r.dir, "away")
	if err := os.Rename(packs, away); err != nil {
		t.Fatal(err)
	}
	if err := r.SetRef("refs/heads/main", first, object.ID{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a place for the pack: %v", err)
	}
	if got, err := r.Ref("refs/heads/main"); !errors.Is(err, ErrNoRef) {
		t.Errorf("the ref is %s, %v", got, err)
	}
	if err := os.Rename(away, packs); err != nil {
		t.Fatal(err)
	}
	next := commit(t, r, must(r.Edit(object.ID{}, []Change{file(t, r, "f", "2")})), first)
	if err := r.SetRef("refs/heads/main", next, object.ID{}); err != nil {
		t.Fatal(err)
	}
	peer.fsck()
}

// TestPushed pushes to a server that checks all it is sent (C24).
func TestPushed(t *testing.T) {
	r, peer := newRepository(t)
	server := newPeer(t, t.TempDir())
	server.run("init", "-q", "--bare", ".")
	server.run("config", "receive.fsckObjects", "true")
	var changes []Change
	for _, path := range []string{"config/a", "config.txt", "config0", "config-x/a", "-rf", "nl\nx", "\xff"} {
		changes = append(changes, file(t, r, path, path))
	}
	who := Signature{Name: "Bot <x>\n evil", Email: "a>b@c", When: someone().When}
	tip := must(r.Commit(Draft{Tree: must(r.Edit(object.ID{}, changes)), Author: who, Committer: who}))
	if err := r.SetRef("refs/heads/main", tip, object.ID{}); err != nil {
		t.Fatal(err)
	}
	peer.run("push", "-q", server.dir, "refs/heads/main")
	server.fsck()
	if left := must(filepath.Glob(filepath.Join(r.dir, "objects", "pack", "tmp_*"))); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
