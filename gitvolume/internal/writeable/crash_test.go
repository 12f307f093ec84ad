package writeable_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/access"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/writeable"
)

// crashAt ends the goroutine at the nth step, as the end of the process would.
type crashAt struct {
	step, nth int
	at        writeable.Step
}

func (c *crashAt) before(s writeable.Step) {
	if c.step++; c.step == c.nth {
		c.at = s
		runtime.Goexit()
	}
}

// story is what happens to a volume; after each part the application is as written.
func story(n *node) (parts []func()) {
	return []func(){
		func() { n.publishOrCrash() },
		func() { n.write("own", "1"); n.write("d/x", "1") },
		func() { n.put("main", files{"up": "2"}); n.write("own", "2"); n.chmod("own", 0o600) },
		func() { n.put("main", files{"a": "theirs"}); n.write("a", "mine") },
		func() { n.write("d/x", "2") },
		func() {
			n.upstream.SetRef(ref, n.upstream.Commit(files{
				"a": "mine", "up": "2", "own": "2", "d/x": "2", "more": "1",
			}, n.upstream.Tip(ref)))
			n.write("own", "3")
		},
		func() { n.stop() },
	}
}

// publishOrCrash is publish of a process that may end meanwhile.
func (n *node) publishOrCrash() {
	n.t.Helper()
	volume, ended := n.start(), make(chan error, 1)
	go func() {
		defer close(ended)
		ended <- volume.Prepare(n.t.Context())
	}()
	err, returned := <-ended
	n.do(err)
	if returned {
		n.follow()
	}
}

// restart is the process that comes after one that ended.
func (n *node) restart() {
	n.t.Helper()
	n.step, n.running = nil, false
	n.close()
	n.publish()
}

// The process ends before any one change to what outlives it. The next one goes on, and
// nothing is lost or committed twice.
func TestEndAtEveryStep(t *testing.T) {
	total := 0
	t.Run("none", func(t *testing.T) {
		synctestWorld(t, func(w *world) {
			n := w.node()
			c := &crashAt{}
			n.step = c.before
			w.tell(n, c)
			total = c.step
		})
	})
	if total < 30 {
		t.Fatalf("the story has %d steps: that cannot be all", total)
	}
	for nth := 1; nth <= total; nth++ {
		t.Run(fmt.Sprint(nth), func(t *testing.T) {
			bubble(t, func(w *world) {
				n := w.node()
				c := &crashAt{nth: nth}
				n.step = c.before
				w.tell(n, c)
				if c.at == "" {
					t.Fatal("it did not end")
				}
			})
		})
	}
}

// A process that ends before a rebuilt record counts leaves the one that does where no
// collection of garbage takes it.
func TestEndBeforeARebuiltRecord(t *testing.T) {
	for name, move := range map[string]func(w *world){
		"the ref moved": func(w *world) { w.put("main", files{"b": "2"}) },
		"the metadata moved": func(w *world) {
			w.upstream.SetRef(history.MetadataRef, w.upstream.Commit(files{"readme": "nothing of yours"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.put("main", files{"a": "1", "b": "1"})
				n := w.node()
				n.jitter = func() float64 { return 1 } // Else no time passes, and the record is the same.
				pushed, fetched, ended := false, false, false
				n.step = func(s writeable.Step) {
					if fetched && s == "keep the position" && !ended {
						ended = true
						runtime.Goexit()
					}
				}
				n.publish()
				n.settle(time.Minute)
				n.remote.set(func(r *nodeRemote) {
					r.before = func(operation string) {
						if operation == "push" && !pushed {
							pushed = true
							move(w)
						}
						fetched = fetched || operation == "fetch"
					}
				})
				n.write("a", "2")
				n.chmod("a", 0o600)
				n.settle(10 * time.Second)
				if !ended {
					t.Fatal("it did not end")
				}
				n.anchored()
				n.restart()
				n.settle(20 * time.Second)
				if got := w.upstream.Git("show", "main:a"); got != "2" {
					t.Errorf("a is %q on the remote", got)
				}
				other := w.restored()
				other.modeIs("a", 0o600)
				other.stop()
				n.stop()
			})
		})
	}
}

// A driver that ended under a running pod follows the tree again without the remote, also
// what was written meanwhile.
func TestRestartUnderAPod(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		c := &crashAt{nth: -1}
		n.step = c.before
		n.publish()
		n.settle(time.Minute)
		c.step, c.nth = 0, 1
		n.write("a", "2")
		n.settle(10 * time.Second)
		if c.at == "" {
			t.Fatal("it did not end")
		}
		n.step = nil
		n.close()
		n.writeUnseen("b", "1")
		n.remote.set(func(r *nodeRemote) { r.down = access.ErrNoCredential })
		n.resume()
		n.settle(10 * time.Second)
		n.faultsAre(report.CredentialMissing)
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		n.volume.TakeCredential()
		n.settle(0)
		n.faultsAre()
		w.remoteHas("main", files{"a": "2", "b": "1"})
		n.stop()
	})
}

// tell tells the story, with a restart where the process ends.
func (w *world) tell(n *node, c *crashAt) {
	w.t.Helper()
	w.put("main", files{"a": "1", "up": "1"})
	for _, part := range story(n) {
		part()
		n.settle(20 * time.Second)
		if c.at != "" && n.step != nil {
			n.anchored()
			n.restart()
			n.settle(20 * time.Second)
		}
	}
	if n.running {
		n.stop()
	}
	want := files{"a": "mine", "up": "2", "own": "3", "d/x": "2", "more": "1"}
	n.has(want)
	w.remoteHas("main", want)
	n.modeIs("own", 0o600)
	w.upstream.Git("fsck", "--strict")
	n.remote.git("fsck", "--strict")
	seen := map[string]bool{}
	for _, line := range strings.Split(w.upstream.Git("log", "--all", "--author=git-csi-driver", "--format=", "--raw", "--no-abbrev"), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			continue
		}
		if change := fields[3] + " " + fields[5]; seen[change] {
			w.t.Errorf("%s was committed twice", change)
		} else {
			seen[change] = true
		}
	}
}

// anchored expects the volume's refs in the store to keep what its position names, as the
// process left it: garbage may be collected before the next one takes the volume up.
func (n *node) anchored() {
	n.t.Helper()
	p := (&keeper{dir: n.dir}).position(n.t)
	needed := []object.ID{p.Tip, p.Metadata}
	if p.Move != nil {
		needed = append(needed, p.Move.Then.Tip, p.Move.Then.Metadata)
	}
	repo, err := history.Open(n.repoDir())
	n.do(err)
	defer repo.Close()
	refs, err := repo.Refs("refs/git-csi/volumes/" + n.handle + "/")
	n.do(err)
	for _, id := range needed {
		kept := slices.ContainsFunc(refs, func(r history.NamedRef) bool {
			contains, err := repo.Contains(r.ID, id)
			return err == nil && contains
		})
		if !kept && !id.IsZero() {
			n.t.Errorf("%s is of the position, and of none of %v", id, refs)
		}
	}
}

// synctestWorld is bubble for a test that others wait for.
func synctestWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	bubbled(t, newWorld(t), test)
}
