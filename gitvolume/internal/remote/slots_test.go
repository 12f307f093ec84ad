package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// begun is when a run was begun, and as which it had come.
type begun struct {
	repository string
	at         time.Time
	came       int
}

// runs is what was begun in slots, in that order; at one time, in that in which it came.
type runs struct {
	t     *testing.T
	slots *Slots

	mu    sync.Mutex
	begun []begun
	came  int
	// over are those that were called off.
	over []string
}

// background begins a run that takes a while and ends with an error. It goes to a
// repository "host/path".
func (r *runs) background(repository string, takes time.Duration, err error) {
	go func() { _, _ = r.run(Asking, repository, takes, err) }()
	synctest.Wait()
}

// push is background of one that pushes.
func (r *runs) push(repository string, takes time.Duration, err error) {
	go func() { _, _ = r.run(Pushing, repository, takes, err) }()
	synctest.Wait()
}

// run waits for its slot, and tells how long it did and how it ended.
func (r *runs) run(errand Errand, repository string, takes time.Duration, err error) (waited time.Duration, ended error) {
	r.mu.Lock()
	r.came++
	one := begun{repository: repository, came: r.came}
	r.mu.Unlock()
	came := time.Now()
	within, release, failed := r.slots.Take(r.t.Context(), repositoryOf(repository), errand)
	if failed != nil {
		return time.Since(came), failed
	}
	waited = time.Since(came)
	one.at = time.Now()
	r.mu.Lock()
	r.begun = append(r.begun, one)
	r.mu.Unlock()
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-within.Done():
		if err = endReason(within); errors.Is(err, ErrTurnOver) {
			r.mu.Lock()
			r.over = append(r.over, repository)
			r.mu.Unlock()
		}
	}
	release(err)
	return waited, err
}

func repositoryOf(repository string) attributes.URL {
	host, path, _ := strings.Cut(repository, "/")
	return attributes.URL{Host: host, Path: path}
}

func inSlots(t *testing.T, test func(r *runs)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(&runs{t: t, slots: NewSlots(2)}) })
}

func (r *runs) wantBegun(want ...string) {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.begun, func(a, b begun) int { return cmp.Or(a.at.Compare(b.at), a.came-b.came) })
	var got []string
	for _, one := range r.begun {
		got = append(got, one.repository)
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("%q were begun, want %q", got, want)
	}
}

func (r *runs) wantOver(want ...string) {
	r.t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.over, want) {
		r.t.Errorf("%q were called off, want %q", r.over, want)
	}
}

func TestSlotsInTheOrderOfComing(t *testing.T) {
	inSlots(t, func(r *runs) {
		for i := range 6 {
			r.background(fmt.Sprint(i), time.Minute, nil)
		}
		r.wantBegun("0", "1")
		time.Sleep(time.Minute)
		r.wantBegun("0", "1", "2", "3")
		time.Sleep(2 * time.Minute)
		r.wantBegun("0", "1", "2", "3", "4", "5")
	})
}

// Many volumes of a dead forge wait for it, and those of another do not.
func TestSilentHostLeavesASlot(t *testing.T) {
	for _, silence := range []error{ErrStalled, ErrTimeout, &Failure{Kind: ErrUnreachable}} {
		inSlots(t, func(r *runs) {
			for i := range 10 {
				r.background(fmt.Sprint("dead/", i), time.Minute, silence)
			}
			time.Sleep(time.Minute)
			r.wantBegun("dead/0", "dead/1", "dead/2")
			r.background("well/1", time.Second, nil)
			r.background("well/2", time.Second, nil)
			time.Sleep(2 * time.Second)
			r.wantBegun("dead/0", "dead/1", "dead/2", "well/1", "well/2")
			time.Sleep(10 * time.Minute)
		})
	}
}

// One repository that hangs is no reason to have the others of its server wait with it.
func TestSilentRepositoryOfAHostThatAnswers(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.background("h/hangs", time.Minute, ErrStalled)
		time.Sleep(2 * time.Minute)
		r.background("h/well", time.Second, nil)
		time.Sleep(2 * time.Second)
		for range 3 {
			r.background("h/hangs", time.Minute, ErrStalled)
		}
		time.Sleep(90 * time.Second)
		r.background("h/well", time.Second, nil)
		r.wantBegun("h/hangs", "h/well", "h/hangs", "h/hangs", "h/well")
		time.Sleep(10 * time.Minute)
	})
}

func TestSilentHostsTakeTurns(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.background("a", time.Second, ErrStalled)
		time.Sleep(2 * time.Second)
		r.background("b", time.Second, ErrStalled)
		time.Sleep(2 * time.Second)
		for range 3 {
			r.background("a", time.Minute, ErrStalled)
		}
		r.background("b", time.Minute, ErrStalled)
		r.wantBegun("a", "b", "a")
		time.Sleep(time.Minute)
		r.wantBegun("a", "b", "a", "b")
		time.Sleep(10 * time.Minute)
	})
}

// A host that answers, be it with a refusal, has all slots again.
func TestHostThatAnswersAgain(t *testing.T) {
	for _, answer := range []error{nil, ErrAuthentication} {
		inSlots(t, func(r *runs) {
			r.background("h", time.Second, ErrStalled)
			time.Sleep(2 * time.Second)
			r.background("h", time.Second, answer)
			r.background("h", time.Minute, nil)
			r.background("h", time.Minute, nil)
			r.wantBegun("h", "h")
			time.Sleep(time.Second)
			r.wantBegun("h", "h", "h", "h")
			time.Sleep(time.Hour)
		})
	}
}

// Of a run that was called off nothing is known of the host.
func TestRunThatWasCalledOff(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.background("h", time.Second, ErrStalled)
		time.Sleep(2 * time.Second)
		r.background("h", time.Second, context.Canceled)
		time.Sleep(2 * time.Second)
		r.background("h", time.Minute, nil)
		r.background("h", time.Minute, nil)
		r.wantBegun("h", "h", "h")
		time.Sleep(time.Hour)
	})
}

// Who gives up takes no slot along.
func TestWaitersGiveUp(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.background("a", time.Minute, nil)
		r.background("b", time.Minute, nil)
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
		defer cancel()
		if _, _, err := r.slots.Take(ctx, repositoryOf("c"), Asking); err == nil {
			t.Error("there was a slot")
		}
		needless := make(chan struct{})
		close(needless)
		_, release, err := r.slots.takeUnless(r.t.Context(), repositoryOf("c"), Asking, needless)
		if err != nil {
			t.Error(err)
		}
		release(nil)
		time.Sleep(time.Minute)
		r.background("d", time.Minute, nil)
		r.background("e", time.Minute, nil)
		r.background("f", time.Minute, nil)
		r.wantBegun("a", "b", "d", "e")
		time.Sleep(time.Hour)
	})
}
