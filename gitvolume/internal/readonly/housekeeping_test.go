package readonly_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/readonly"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// TestTidyKeepsWhatIsFollowed has git collect all that no ref reaches.
func TestTidyKeepsWhatIsFollowed(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	n := newNode(t).start()
	never := n.attach(n.volume("never", urlOf(b), map[string]string{"pull": "never", "offline": "allowStale"}))
	a := n.attach(n.volume("v", urlOf(b), nil))
	b.SetRef("refs/heads/main", b.Commit(map[string]string{"f": "2"}))
	a.Demand()
	shows(t, a, "f", "2")
	repositories, err := n.store.Repositories()
	n.must(err)
	dir := repositories[0].Dir()
	n.must(n.store.Tidy(t.Context(), func(context.Context, string) error { return nil }))
	gitWith(t, b, "", "-C", dir, "gc", "-q", "--prune=now")
	for name, attached := range map[string]*readonly.Attachment{"1": never, "2": a} {
		commit := attached.Record().Reading.Checkout
		if text := gitWith(t, b, "", "-C", dir, "show", store.CheckoutRef(commit, store.AnchorTip)+":f"); text != name {
			t.Errorf("the repository has %q of the tree that holds %q", text, name)
		}
	}
	n.must(n.followers.Detach(t.Context(), "v"))
	n.must(n.followers.Detach(t.Context(), "never"))
	n.must(n.store.Tidy(t.Context(), func(context.Context, string) error { return nil }))
	if left, err := n.store.Repositories(); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestRepositoryIsLost takes the repository away under a volume that is followed.
func TestRepositoryIsLost(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(dir string) error{
		"all of it": os.RemoveAll,
		"its objects": func(dir string) error {
			return errors.Join(os.RemoveAll(dir+"/objects"), os.MkdirAll(dir+"/objects/pack", 0o700))
		},
		"its HEAD": func(dir string) error { return os.Remove(filepath.Join(dir, "HEAD")) },
	} {
		for when, next := range map[string]func(n *node){
			"while it runs":     func(*node) {},
			"before a restart":  func(n *node) { n.restart() },
			"before it resumes": func(n *node) { n.stop(); n.start() },
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				b := gittest.NewBare(t)
				b.Grow("main", "f", "1")
				n := newNode(t).start()
				given := map[string]string{"depth": "1", "pull": "1s"}
				n.attach(n.volume("v", urlOf(b), given))
				repositories, err := n.store.Repositories()
				n.must(err)
				n.must(damage(repositories[0].Dir()))
				b.Grow("main", "f", "2")
				next(n)
				var a *readonly.Attachment
				until(t, "it is attached", func() bool {
					a, err = n.followers.Attach(t.Context(), n.volume("v", urlOf(b), given))
					return err == nil
				})
				until(t, "the new content", func() bool {
					a.Demand() // Sooner than it is tried again.
					return read(a, "f") == "2"
				})
				until(t, "nothing is wrong", func() bool { return n.faults("v") == "" })
			})
		}
	}
}

// TestSetAsideWhileAFetchWaitsForItsTurn has others' remotes keep a repository from being
// fetched: it can be set aside meanwhile, and is made anew by the fetch.
func TestSetAsideWhileAFetchWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	n := newNode(t).start()
	a := n.attach(n.volume("v", urlOf(b), map[string]string{"pull": "on-demand"}))
	waits, others := make(chan struct{}), make(chan struct{})
	n.pulling = sync.OnceFunc(func() {
		for range 2 {
			_, release, err := n.slots.Take(t.Context(), attributes.URL{Host: "elsewhere"}, remote.Asking)
			n.must(err)
			go func() {
				<-others
				release(nil)
			}()
		}
		close(waits)
	})
	b.Grow("main", "f", "2")
	a.Demand()
	<-waits
	repositories, err := n.store.Repositories()
	n.must(err)
	instance, err := repositories[0].Instance()
	n.must(err)
	if path, err := repositories[0].SetAside(t.Context(), instance, "broken"); err != nil || path == "" {
		t.Errorf("it was set aside at %q, %v", path, err)
	}
	close(others)
	shows(t, a, "f", "2")
}

// TestCheckoutsOfCrashesAreRemoved has one that no record names, and one whose record
// cannot be read.
func TestCheckoutsOfCrashesAreRemoved(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	n := newNode(t).start()
	n.attach(n.volume("v", urlOf(b), nil))
	n.must(n.store.MakeCheckout(store.CheckoutKey([32]byte{1})))
	n.restart()
	if left, err := n.store.Checkouts(); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
	n.stop()
	n.must(os.WriteFile(filepath.Join(n.dir, "volumes", "v", "record.json"), []byte(`{"version": 9}`), 0o600))
	n.start()
	if left, err := n.store.Checkouts(); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestANoteThatSaysNothing has the note of a checkout be damaged that no pod sees any more, as
// after a reboot: its volume is shown again.
func TestANoteThatSaysNothing(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty": "", "cut off": `{"commit":"0123`, "garbage": "\x00\xff", "without a commit": "{}",
		"with another's move": `{"commit":"` + strings.Repeat("1", 40) + `","tree":"` + strings.Repeat("2", 40) + `","next":{}}`,
		"of what is nowhere":  `{"commit":"` + strings.Repeat("1", 40) + `","tree":"` + strings.Repeat("2", 40) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := gittest.NewBare(t)
			b.Grow("main", "f", "1")
			n := newNode(t).start()
			note := filepath.Join(filepath.Dir(n.attach(n.volume("v", urlOf(b), nil)).Dir()), "note.json")
			n.stop()
			n.must(os.WriteFile(note, []byte(content), 0o600))
			b.Grow("main", "f", "2")
			n.start()
			a := n.attach(n.volume("v", urlOf(b), nil))
			shows(t, a, "f", "2")
			b.Grow("main", "f", "3")
			a.Demand()
			shows(t, a, "f", "3")
			until(t, "nothing is wrong", func() bool { return n.faults("v") == "" })
		})
	}
}

// TestUpdateOfARecord has the driver's part of it saved beside this package's.
func TestUpdateOfARecord(t *testing.T) {
	t.Parallel()
	b := gittest.NewBare(t)
	b.Grow("main", "f", "1")
	n := newNode(t).start()
	a := n.attach(n.volume("v", urlOf(b), nil))
	n.must(a.Save(func(r *store.Record) { r.Targets = []store.Target{{Path: "/t"}} }))
	kept, err := n.store.Load("v")
	n.must(err)
	if len(kept.Targets) != 1 || kept.Reading == nil || kept.Reading.Checkout != a.Record().Reading.Checkout {
		t.Errorf("kept is %+v", kept)
	}
	if _, err := n.followers.Attach(t.Context(), n.volume("v", urlOf(b), map[string]string{"pull": "9m"})); !errors.Is(err, readonly.ErrOther) {
		t.Errorf("attached as another: %v", err)
	}
	n.must(a.Detach(t.Context()))
	if err := a.Save(func(*store.Record) {}); !errors.Is(err, store.ErrNoRecord) {
		t.Errorf("saved after its end: %v", err)
	}
	n.must(a.Detach(t.Context()))
	n.leavesNothing()
}
