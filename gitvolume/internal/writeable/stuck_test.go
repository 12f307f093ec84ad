package writeable_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/writeable"
)

// keeperThat keeps what refuse has no error for.
type keeperThat struct {
	writeable.Keeper
	refuse func(p store.Position) error
}

func (k *keeperThat) Keep(p store.Position) error {
	if err := k.refuse(p); err != nil {
		return err
	}
	return k.Keeper.Keep(p)
}

// A move of the tree that a full disk stopped halfway is finished when there is room, by a
// clock that goes on meanwhile.
func TestMoveThatFailedIsFinished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("main", files{"a": "1", "b": "1"})
	n := w.node()
	n.arming.Policy.Quiesce = 50 * time.Millisecond
	n.start()
	var following, failed atomic.Bool
	n.volume.Keeper = &keeperThat{Keeper: n.volume.Keeper, refuse: func(p store.Position) error {
		if following.Load() && p.Replaying && !failed.Swap(true) {
			return errors.New("no space left on device")
		}
		return nil
	}}
	n.do(n.volume.Prepare(t.Context()))
	following.Store(true)
	n.follow()
	w.put("main", files{"b": "2"})
	n.write("a", "2")
	k := &keeper{dir: n.dir}
	n.soon(func() bool { return failed.Load() && k.position(t).Move == nil })
	n.has(files{"a": "2", "b": "2"})
	n.stop()
}

// What a full disk kept from being committed is found once more, and that says nothing of
// the events, which had announced it.
func TestCommitThatFailedIsNoMissingEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("main", files{"a": "1"})
	n := w.node()
	n.arming.Policy.Quiesce = 50 * time.Millisecond
	n.start()
	var full atomic.Bool
	n.volume.Keeper = &keeperThat{Keeper: n.volume.Keeper, refuse: func(store.Position) error {
		if full.Load() {
			return errors.New("no space left on device")
		}
		return nil
	}}
	n.do(n.volume.Prepare(t.Context()))
	n.follow()
	n.write("b", "1") // What is there at the start had no event to announce it.
	n.soon(func() bool {
		_, err := w.upstream.TryGit("cat-file", "-e", "main:b")
		return err == nil
	})
	full.Store(true)
	n.write("a", "2")
	n.soon(func() bool { return n.lasts(report.CommitFailed) })
	full.Store(false)
	watch := n.watch
	n.stop()
	w.shows("a", "2")
	watch.mu.Lock()
	defer watch.mu.Unlock()
	told := slices.DeleteFunc(watch.found, func(path string) bool { return path != "a" })
	if len(told) != 1 {
		t.Errorf("the watch was told of a %d times, want once", len(told))
	}
}

// Without a repository nothing is done until it is worth trying again, whatever is due.
func TestNoRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("main", files{"a": "1"})
	n := w.node()
	n.arming.Policy.Quiesce = 50 * time.Millisecond
	n.start()
	var gone atomic.Bool
	var tries atomic.Int32
	n.volume.Use = func(context.Context) (func(), error) {
		if gone.Load() {
			tries.Add(1)
			return nil, errors.New("no space left on device")
		}
		return func() {}, nil
	}
	n.remote.set(func(r *nodeRemote) { r.decline = map[string]string{ref: `"no"`} })
	n.do(n.volume.Prepare(t.Context()))
	n.follow()
	n.write("a", "2")
	n.soon(func() bool { return n.lasts(report.PushFailed) })
	gone.Store(true)
	n.volume.TakeCredential()
	n.soon(func() bool { return n.lasts(report.CommitFailed) })
	for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if tries.Load() > 3 {
			t.Fatalf("it was tried %d times in a moment", tries.Load())
		}
	}
	gone.Store(false)
	n.stop()
}

// A watch ends with the volume, be it followed or not.
func TestWatchEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("main", files{"a": "1"})
	n := w.node()
	n.do(n.start().Prepare(t.Context()))
	n.do(n.volume.Watch())
	n.close() // As where the record of it could not be written.
	if n.watch.stops != 1 {
		t.Errorf("a watch that nobody followed ended %d times, want once", n.watch.stops)
	}
	n.publish()
	n.running = false
	volume := n.volume
	n.do(volume.Stop(t.Context(), time.Minute))
	n.close()
	volume.Halt() // Run has ended then.
	if n.watch.stops != 1 {
		t.Errorf("a watch that was followed ended %d times, want once", n.watch.stops)
	}
}

// soon waits, by a real clock.
func (n *node) soon(is func() bool) {
	n.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.t.Fatalf("it does not become so; the faults are %v", n.said.faults)
		}
	}
}

func (n *node) lasts(f report.Fault) bool {
	n.said.mu.Lock()
	defer n.said.mu.Unlock()
	_, lasts := n.said.faults[f]
	return lasts
}
