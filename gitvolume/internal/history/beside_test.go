package history

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// besideFor is how long something is done beside git, which may take that long to start
// a few times on a busy machine.
const besideFor = 1500 * time.Millisecond

// beside has git do the same over and over while do is called over and over, until both
// were done often enough and besideFor is over.
func (p *peer) beside(do func(n int), args ...string) {
	p.t.Helper()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	began := make(chan struct{}, 1<<16)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			began <- struct{}{}
			command := exec.Command("git", args...)
			command.Dir, command.Env = p.dir, p.env
			if out, err := command.CombinedOutput(); err != nil {
				stopped <- fmt.Errorf("git %q: %w\n%s", args, err, bytes.TrimSpace(out))
				return
			}
		}
	}()
	const least = 4
	n, end := 0, time.Now().Add(besideFor)
	for ; (n < least || len(began) < least || time.Now().Before(end)) && len(stopped) == 0; n++ {
		do(n)
	}
	close(stop)
	if err := <-stopped; err != nil {
		p.t.Error(err)
	}
	p.t.Logf("done %d times, git was run %d times", n, len(began))
}

// TestBesidePackRefs sets, reads, lists and deletes refs while git packs them, as someone
// may do by hand: each is what it was set to, at once, and nothing is an error.
func TestBesidePackRefs(t *testing.T) {
	r, peer := newRepository(t)
	ids := []object.ID{dated(r, 1), dated(r, 2), dated(r, 3)}
	const name, passing = "refs/heads/main", "refs/heads/passing/by"
	is := object.ID{}
	peer.beside(func(n int) {
		to := ids[n%len(ids)]
		if err := r.SetRef(name, to, is); err != nil {
			t.Fatal(err)
		}
		is = to
		if got, err := r.Ref(name); err != nil || got != to {
			t.Fatalf("the ref is %s, %v, and was set to %s", got, err, to)
		}
		if err := r.SetRef(passing, to, object.ID{}); err != nil {
			t.Fatal(err)
		}
		if err := r.DeleteRef(passing, to); err != nil {
			t.Fatal(err)
		}
		if got, err := r.Ref(passing); !errors.Is(err, ErrNoRef) {
			t.Fatalf("the ref that was deleted is %s, %v", got, err)
		}
	}, "pack-refs", "--all")
	if out := peer.run("rev-parse", name); out != is.String() {
		t.Errorf("git says %s, it was set to %s", out, is)
	}
	peer.fsck()
}

// TestBesideGC commits while git looks after the repository, as the driver has it do: no
// commit may lose an object, and none fails.
func TestBesideGC(t *testing.T) {
	r, peer := newRepository(t)
	const name = "refs/heads/main"
	tree, tip, kept := object.ID{}, object.ID{}, []object.ID(nil)
	peer.beside(func(n int) {
		// Every other content was there before, so it is in a pack that may be going.
		tree = must(r.Edit(tree, []Change{
			file(t, r, fmt.Sprintf("d%d/f", n%5), fmt.Sprint("old", n%2)), file(t, r, "new", fmt.Sprint(n)),
		}))
		if n%3 == 0 { // The commit comes into another pack than its tree.
			if err := r.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		next := commit(t, r, tree, parentsOf(tip)...)
		if err := r.SetRef(name, next, tip); err != nil {
			t.Fatal(err)
		}
		tip = next
		kept = append(kept, tip)
		if _, err := r.Find(tree, "new"); err != nil {
			t.Fatal(err)
		}
	}, "gc", "--quiet", "--force", "--prune=6.hours.ago")
	peer.fsck()
	again := openRepository(t, r.dir)
	if own := must(again.Own(object.ID{}, must(again.Ref(name)))); len(own) != len(kept) {
		t.Errorf("there are %d commits of %d", len(own), len(kept))
	}
}
