package writeable_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
)

func TestCommitAndPush(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.write("a", "2")
		n.settle(4 * time.Second)
		if got := w.count("main"); got != "1" {
			t.Errorf("%s commits before the quiesce, want 1", got)
		}
		n.settle(2 * time.Second)
		w.remoteHas("main", files{"a": "2", "b": "1"})
		n.happened(report.Pushed, "to main, 1 path")
		if got, want := w.upstream.Git("log", "-1", "--format=%B", "main"), "Update a\n\nM a\n\nVolume: default/notes\n"; got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
		if got := w.upstream.Git("log", "-1", "--format=%an <%ae>", "main"); got != "git-csi-driver <git-csi-driver@git.liken.sh>" {
			t.Errorf("the author is %q", got)
		}
		n.write("b", "2")
		n.write("c\nVolume: other/claim", "3")
		n.remove("a")
		n.settle(10 * time.Second)
		want := "Update 3 paths\n\nD a\nM b\nA \"c\\nVolume: other/claim\"\n\nVolume: default/notes\n"
		if got := w.upstream.Git("log", "-1", "--format=%B", "main"); got != want {
			t.Errorf("the message is %q, want %q", got, want)
		}
		n.stop()
		n.faultsAre()
	})
}

// A tree that is never quiet is committed and pushed all the same.
func TestBusyTree(t *testing.T) {
	busy := func(n *node, seconds int) {
		for i := range seconds {
			n.write("a", fmt.Sprint(i))
			n.settle(time.Second)
		}
	}
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.arming = armed(files{"push.quiesce": "5s", "push.maxLatency": "20s"})
		n.publish()
		busy(n, 60)
		if got := w.count("main"); got != "2" && got != "3" {
			t.Errorf("%s commits on the remote after a minute, want one or two of the volume", got)
		}
		n.stop()
		w.remoteHas("main", files{"a": "59"})
	})
	t.Run("never", func(t *testing.T) {
		bubble(t, func(w *world) {
			w.put("main", files{"a": "1"})
			n := w.node()
			n.arming = armed(files{"push.quiesce": "5s", "push.maxLatency": "never"})
			n.publish()
			busy(n, 300)
			if got := w.count("main"); got != "1" {
				t.Errorf("%s commits, want none of a tree that was not quiet", got)
			}
			n.settle(10 * time.Second)
			w.remoteHas("main", files{"a": "299"})
			n.stop()
		})
	})
}

// A push that is rejected because the ref moved is rebased and tried again, under the
// application's hands.
func TestRefMoved(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		upstream := w.put("main", files{"b": "2", "d/e": "1"})
		n.write("a", "2")
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "2", "b": "2", "d/e": "1"})
		n.has(files{"a": "2", "b": "2", "d/e": "1"})
		n.happened(report.Rebased, "1 commit onto "+upstream[:7])
		n.faultsAre()
		n.stop()
		if got := w.count("main"); got != "3" {
			t.Errorf("%s commits, want 3: nothing twice", got)
		}
	})
}

// What the application wrote since the commit stays, unless upstream changed the file.
func TestRefMovedUnderWrites(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1", "c": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		w.put("main", files{"b": "2"})
		n.write("a", "2")
		n.remote.set(func(r *nodeRemote) {
			r.before = func(operation string) {
				if operation == "fetch" {
					n.writeUnseen("c", "later")
				}
			}
		})
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "2", "b": "2", "c": "1"})
		n.has(files{"a": "2", "b": "2", "c": "later"})
		n.stop()
		w.remoteHas("main", files{"a": "2", "b": "2", "c": "later"})
	})
}

func TestFileChangedByBoth(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		w.put("main", files{"b": "2"})
		n.write("a", "2")
		n.remote.set(func(r *nodeRemote) {
			r.before = func(operation string) {
				if operation == "fetch" {
					n.writeUnseen("b", "mine")
				}
			}
		})
		n.settle(10 * time.Second)
		n.faultsAre(report.Diverged)
		n.has(files{"a": "2", "b": "mine"})
		w.remoteHas("main", files{"a": "1", "b": "2"})
		w.remoteHas(side, files{"a": "2", "b": "1"})
		n.stop()
		w.remoteHas(side, files{"a": "2", "b": "mine"})
	})
}

// A ref that moves before each try is given up for the side branch.
func TestRefMovesEachTime(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		moves := 0
		n.remote.set(func(r *nodeRemote) {
			r.before = func(operation string) {
				if operation == "push" && moves < 4 {
					moves++
					w.put("main", files{fmt.Sprintf("u%d", moves): "1"})
				}
			}
		})
		n.write("a", "2")
		n.settle(20 * time.Second)
		n.faultsAre(report.Diverged)
		if n.has(files{"a": "2", "u1": "1", "u2": "1", "u3": "1"}); moves != 4 {
			t.Errorf("%d tries, want 4: three rebases", moves)
		}
		w.remoteHas(side, files{"a": "2", "u1": "1", "u2": "1", "u3": "1"})
		n.stop()
	})
}

func TestDeclinedPush(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.decline = map[string]string{ref: `"no pushes on Mondays"`} })
		n.write("a", "2")
		n.settle(6 * time.Second)
		n.faultsAre(report.PushFailed)
		if words := n.said.faults[report.PushFailed]; !strings.Contains(words, "no pushes on Mondays") {
			t.Errorf("it says %q, want the remote's words", words)
		}
		if w.upstream.Tip(side) != "" {
			t.Error("a refusal of a hook made a side branch")
		}
		n.settle(time.Hour)
		// 10, 20, 40, 80, 160 s, and every 5 minutes from then on.
		if n.remote.pushes < 14 || n.remote.pushes > 20 {
			t.Errorf("%d pushes in an hour, want some 17", n.remote.pushes)
		}
		n.remote.set(func(r *nodeRemote) { r.decline = nil })
		n.volume.TakeCredential()
		n.settle(0)
		w.remoteHas("main", files{"a": "2"})
		n.faultsAre()
		n.stop()
	})
}

// A push whose answer was lost is not pushed again, also if others pushed after it.
func TestLostAnswer(t *testing.T) {
	for _, others := range []bool{false, true} {
		t.Run(fmt.Sprintf("others=%v", others), func(t *testing.T) {
			bubble(t, func(w *world) {
				w.put("main", files{"a": "1", "b": "1"})
				n := w.node()
				n.publish()
				n.settle(time.Minute)
				n.remote.set(func(r *nodeRemote) { r.lost = true })
				n.write("a", "2")
				n.settle(6 * time.Second)
				n.faultsAre(report.PushFailed)
				want, commits := files{"a": "2", "b": "1"}, "2"
				if others {
					// One of them takes the change back.
					w.put("main", files{"a": "1", "b": "2"})
					want, commits = files{"a": "1", "b": "2"}, "3"
				}
				n.settle(time.Minute)
				n.faultsAre()
				w.remoteHas("main", want)
				if got := w.count("main"); got != commits {
					t.Errorf("%s commits, want %s", got, commits)
				}
				n.stop()
			})
		})
	}
}

// A remote that tells something else each time it is asked does not keep the volume in a
// push for ever.
func TestRestlessRemote(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.restless = true })
		n.write("a", "2")
		n.settle(6 * time.Second)
		n.faultsAre(report.PushFailed)
		n.write("b", "1")
		n.settle(6 * time.Second)
		if got := n.figures().Unpushed; got != 2 {
			t.Errorf("%d commits are kept, want both", got)
		}
		n.remote.set(func(r *nodeRemote) { r.restless = false })
		n.settle(time.Minute)
		n.faultsAre()
		w.remoteHas("main", files{"a": "2", "b": "1"})
		if w.upstream.Tip(side) != "" {
			t.Error("there is a side branch")
		}
		n.stop()
	})
}

// A remote that is never done with a push is given up after a while: what is written
// meanwhile has to be committed. A stop does not wait for it.
func TestPushThatHangs(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.hangs = true })
		n.write("a", "2")
		n.settle(10 * time.Second)
		n.write("b", "1")
		n.settle(59 * time.Minute)
		n.faultsAre()
		n.settle(70 * time.Second)
		n.faultsAre(report.PushFailed)
		if got := n.figures().Unpushed; got != 2 {
			t.Errorf("%d commits are kept, want both", got)
		}
		n.write("c", "1")
		n.stop()
		n.faultsAre(report.PushFailed)
		n.remote.set(func(r *nodeRemote) { r.hangs = false })
		n.publish()
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "2", "b": "1", "c": "1"})
		n.faultsAre()
		n.stop()
	})
}

// A remote that asks to be left alone for a while is, whatever the delay would be.
func TestRetryAfter(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) {
			r.down = &remote.Failure{Kind: remote.ErrUnreachable, After: 4 * time.Minute}
		})
		n.write("a", "2")
		n.settle(6 * time.Second)
		n.faultsAre(report.PushFailed)
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		n.settle(3*time.Minute + 50*time.Second)
		if got := w.count("main"); got != "1" {
			t.Error("it was not left alone")
		}
		n.settle(10 * time.Second)
		w.remoteHas("main", files{"a": "2"})
		n.faultsAre()
		n.stop()
	})
}

// busy is a context by which a scan is told to go on, and which writes each time it is
// asked, up to some times: the application is as quick as that.
type busy struct {
	context.Context
	times int
	write func(left int)
}

func (b *busy) Err() error {
	if b.times > 0 {
		b.times--
		b.write(b.times)
	}
	return b.Context.Err()
}

// A file that is written as it is read, in the last look before a stop, is read again: there
// is no later look.
func TestWrittenAtTheStop(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		ctx := &busy{Context: n.t.Context(), times: 5, write: func(left int) {
			n.writeUnseen("a", strings.Repeat("x", 10-left))
		}}
		n.running = false
		n.do(n.volume.Stop(ctx, 30*time.Second))
		if ctx.times != 0 {
			t.Fatal("nothing was written meanwhile")
		}
		w.remoteHas("main", files{"a": strings.Repeat("x", 10)})
		n.faultsAre()
		n.close()
	})
}

// A change that upstream took over and took back is the application's still.
func TestTakenOverAndReverted(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1", "b": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.remote.set(func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrUnreachable} })
		n.write("a", "2")
		n.settle(6 * time.Second)
		w.put("main", files{"a": "2"})
		w.put("main", files{"a": "1"})
		n.remote.set(func(r *nodeRemote) { r.down = nil })
		n.settle(time.Minute)
		w.remoteHas("main", files{"a": "2", "b": "1"})
		n.has(files{"a": "2", "b": "1"})
		n.stop()
	})
}

// What no event announces is found all the same, and said.
func TestSilentWatch(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		n.writeUnseen("a", "2")
		n.settle(5*time.Minute + 10*time.Second)
		w.remoteHas("main", files{"a": "2"})
		if len(n.watch.found) == 0 {
			t.Error("the watch was not told of a change that it had not announced")
		}
		n.stop()
	})
}

// What is older than the watch, or what another class found already, no event had to
// announce: the watch is not to blame.
func TestWatchIsNotBlamed(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.arming = unarmed()
		n.publish()
		n.stop()
		n.writeUnseen("a", "2")
		n.remote.set(func(r *nodeRemote) { r.down = &remote.Failure{Kind: remote.ErrUnreachable} })
		n.publish()
		n.settle(time.Minute)
		if got := n.figures().Pending; got != 1 || len(n.watch.found) != 0 {
			t.Errorf("%d paths are pending, and the watch was told of %q; want 1 and none", got, n.watch.found)
		}
		n.arming = armed(nil)
		n.volume.Arm(n.arming)
		n.settle(time.Minute)
		if got := n.figures().Pending; got != 0 || len(n.watch.found) != 0 {
			t.Errorf("%d paths are pending, and the watch was told of %q; want none", got, n.watch.found)
		}
		if got := n.figures().Unpushed; got != 1 {
			t.Errorf("%d commits are not pushed, want 1", got)
		}
		n.stop()
		n.publish()
		if got := n.figures().Unpushed; got != 1 {
			t.Errorf("after a restart %d commits are not pushed, want 1", got)
		}
		n.stop()
	})
}

// Writers of different files of one ref converge, without side branches.
func TestManyWriters(t *testing.T) {
	for _, writers := range []int{2, 4} {
		t.Run(fmt.Sprint(writers), func(t *testing.T) {
			bubble(t, func(w *world) {
				w.put("main", files{"readme": "1"})
				var nodes []*node
				for i := range writers {
					n := w.nodeOf(fmt.Sprintf("v%d", i), fmt.Sprintf("default/v%d", i))
					n.jitter = rand.Float64 // In step they would meet each time.
					n.publish()
					nodes = append(nodes, n)
				}
				want := files{"readme": "1"}
				for round := range 3 {
					for i, n := range nodes {
						path := fmt.Sprintf("app%d/f%d", i, round)
						n.write(path, "x")
						want[path] = "x"
					}
					nodes[0].settle(20 * time.Second)
				}
				nodes[0].settle(10 * time.Minute)
				w.remoteHas("main", want)
				for _, n := range nodes {
					n.faultsAre()
					n.stop()
				}
				if refs := w.upstream.Git("for-each-ref", "--format=%(refname)", "refs/heads"); refs != ref {
					t.Errorf("the branches are %q, want main alone", refs)
				}
				if got, want := w.count("main"), fmt.Sprint(1+3*writers); got != want {
					t.Errorf("%s commits, want %s", got, want)
				}
			})
		})
	}
}

// What others brought to the branch is not what the volume pushed.
func TestPushedPathsAreTheVolumesOwn(t *testing.T) {
	bubble(t, func(w *world) {
		w.put("main", files{"a": "1"})
		n := w.node()
		n.publish()
		n.settle(time.Minute)
		w.put("main", files{"b": "1", "c": "1"})
		n.write("a", "2")
		n.settle(time.Minute)
		w.remoteHas("main", files{"a": "2", "b": "1", "c": "1"})
		n.happened(report.Rebased, "1 commit onto")
		n.happened(report.Pushed, "to main, 1 path")
		n.stop()
	})
}
