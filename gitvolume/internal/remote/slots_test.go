package remote

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// runs is what was begun in slots, in that order.
type runs struct {
	t     *testing.T
	slots *Slots
	begun []string
}

// background begins a run that takes a while and ends with an error. It goes to a
// repository "host/path".
func (r *runs) background(repository string, takes time.Duration, err error) {
	go func() {
		release, failed := r.slots.Take(r.t.Context(), repositoryOf(repository))
		if failed != nil {
			return
		}
		r.begun = append(r.begun, repository)
		time.Sleep(takes)
		release(err)
	}()
	synctest.Wait()
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
	if !slices.Equal(r.begun, want) {
		r.t.Errorf("%q were begun, want %q", r.begun, want)
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
		if _, err := r.slots.Take(ctx, repositoryOf("c")); err == nil {
			t.Error("there was a slot")
		}
		needless := make(chan struct{})
		close(needless)
		release, err := r.slots.takeUnless(r.t.Context(), repositoryOf("c"), needless)
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
