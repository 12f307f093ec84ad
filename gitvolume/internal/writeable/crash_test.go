package writeable_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/access"
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

// synctestWorld is bubble for a test that others wait for.
func synctestWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	bubbled(t, newWorld(t), test)
}
