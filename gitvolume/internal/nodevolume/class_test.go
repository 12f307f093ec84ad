package nodevolume_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/gittest"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

// pathsPending is the fault of a tree that has changes and is not committed.
const pathsPending report.Fault = "PathsPending"

// The class is changed, paused and made invalid under the pod, and by a restart: what is
// written while none is in force is committed when one is, and the tree is never touched.
func TestClassUnderWay(t *testing.T) {
	t.Parallel()
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	dir := newDir(t)
	p := newProcess(t, dir)
	v := p.volume(wants(upstream.Dir)).publish()
	v.write("a", "2")
	arrives(t, upstream, "main", files{"a": "2"})

	paused := writeable.Arming{Policy: armed().Policy, Class: "paused", Unarmed: policy.ErrPaused}
	check(t, v.Arm(paused))
	v.write("b", "1")
	v.soon(pathsPending)
	invalid := writeable.Arming{Policy: policy.Default(), Class: "bad", Unarmed: errors.New(`push.quiesce "1s" is below 5s`)}
	check(t, v.Arm(invalid))
	v.soon(pathsPending, report.ClassUnusable)
	v.write("c", "1")
	v.stop() // Which commits nothing.
	p.end()
	if got := filesOf(upstream, "main"); len(got) != 1 {
		t.Errorf("main has %s: it was committed without a class", text(got))
	}

	p = newProcess(t, dir)
	w := v.wish
	w.arming = invalid
	v = p.volume(w)
	check(t, v.Keep(t.Context())) // The record has no class that arms.
	check(t, v.Publish(t.Context()))
	v.has(files{"a": "2", "b": "1", "c": "1"})
	v.soon(pathsPending, report.ClassUnusable)
	other := armed()
	other.Policy.Author.Name, other.Policy.Author.Email = "Another", "another@example.invalid"
	other.Policy.Ignore = []string{"b"}
	check(t, v.Arm(other))
	arrives(t, upstream, "main", files{"a": "2", "c": "1"})
	v.soon()
	if got := upstream.Git("log", "-1", "--format=%an <%ae>", "main"); got != "Another <another@example.invalid>" {
		t.Errorf("the author is %s", got)
	}
	check(t, v.Arm(armed())) // b is ignored no more.
	arrives(t, upstream, "main", files{"a": "2", "b": "1", "c": "1"})
	v.stop()
	v.faultsAre()
	p.end()
}

// A credential is taken while the disk does not answer.
func TestCredentialDoesNotWaitForTheDisk(t *testing.T) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	p := newProcess(t, newDir(t))
	check(t, p.store.Close())
	var hangs atomic.Bool
	asked, answers := make(chan struct{}), make(chan struct{})
	opened, err := store.Open(store.Settings{Dir: p.store.Dir(), Log: p.log, BeforeStep: func(s store.Step) {
		if s == "write record" && hangs.Swap(false) {
			close(asked)
			<-answers
		}
	}})
	check(t, err)
	p.store = opened
	v := p.volume(wants(upstream.Dir)).publish()
	hangs.Store(true)
	written := make(chan error, 1)
	go func() { written <- v.Arm(armed()) }()
	<-asked
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		v.TakeCredential()
	}()
	select {
	case <-taken:
	case <-time.After(patience):
		t.Error("a credential waits for a disk")
	}
	close(answers)
	check(t, <-written)
	v.stop()
	p.end()
}

// The class that comes while a kept tree is committed, under that of its record, counts from
// then on.
func TestArmWhileKept(t *testing.T) {
	upstream, dir, v := ended(t)
	v.write("b", "1")

	p := newProcess(t, dir)
	w := v.wish
	w.arming = writeable.Arming{Unarmed: errors.New("the cluster was not asked yet")}
	v = p.volume(w)
	release := p.hold(w.url)
	ctx := newAsked(t.Context())
	kept := make(chan error, 1)
	go func() { kept <- v.Keep(ctx) }()
	<-ctx.asked // It waits for the repository.
	check(t, v.Arm(armed()))
	release()
	check(t, <-kept)
	check(t, v.Publish(t.Context()))
	v.write("c", "1")
	arrives(t, upstream, "main", files{"a": "1", "b": "1", "c": "1"})
	v.stop()
	p.end()
}

// A publish that cannot have the repository fails, and leaves nothing of the pushing of
// before, which would go on with a repository that is closed.
func TestPublishWhileTheRepositoryIsHeld(t *testing.T) {
	upstream := gittest.NewBare(t)
	put(t, upstream, "main", files{"a": "1"})
	p := newProcess(t, newDir(t))
	v := p.volume(wants(upstream.Dir)).publish()
	drop := v.away()
	v.write("b", "1")
	v.stop()
	check(t, v.Linger(t.Context(), 100*time.Millisecond))
	if followed() == 0 {
		t.Fatal("nothing goes on")
	}
	release := p.hold(v.wish.url)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := v.Publish(ctx); err == nil {
		t.Error("a tree was published of a repository that nobody could have")
	}
	within(t, 2*time.Minute, func() bool { return followed() == 0 }, func() string { return "the volume is followed still" })
	release()
	drop()
	check(t, v.Publish(t.Context()))
	arrives(t, upstream, "main", files{"a": "1", "b": "1"})
	v.stop()
	v.faultsAre()
	p.end()
}
