package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/csicommon/keyedmutex"
)

func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g guards
		ctx := t.Context()
		first, err := g.share(ctx, "r")
		must(t, err)
		second, err := g.share(ctx, "r")
		must(t, err)
		if _, ok := g.trySeize("r"); ok {
			t.Error("it is had alone while others use it")
		}
		other, ok := g.trySeize("other")
		if !ok {
			t.Error("one repository waits for another")
		}
		var order []string
		alone := make(chan func())
		go func() {
			release, err := g.seize(ctx, "r")
			must(t, err)
			order = append(order, "alone")
			alone <- release
		}()
		synctest.Wait()
		shared := make(chan func())
		go func() {
			release, err := g.share(ctx, "r")
			must(t, err)
			order = append(order, "shared")
			shared <- release
		}()
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("%v came in between", order)
		}
		first()
		first() // A release counts once.
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("%v came in before the second was done", order)
		}
		second()
		(<-alone)()
		(<-shared)()
		other()
		if len(order) != 2 || order[0] != "alone" {
			t.Errorf("the order was %v", order)
		}
		if len(g.of) != 0 {
			t.Errorf("%d guards are kept", len(g.of))
		}
	})
}

func TestGuardGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g guards
		user, err := g.share(t.Context(), "r")
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.seize(ctx, "r"); !errors.Is(err, keyedmutex.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("seize: %v", err)
		}
		// Who gave up keeps nobody out.
		next, err := g.share(t.Context(), "r")
		must(t, err)
		next()
		user()
		alone, err := g.seize(t.Context(), "r")
		must(t, err)
		if _, err := g.share(ctx, "r"); !errors.Is(err, keyedmutex.ErrBusy) {
			t.Errorf("share: %v", err)
		}
		alone()
		if len(g.of) != 0 {
			t.Errorf("%d guards are kept", len(g.of))
		}
	})
}

func TestGuardUnderLoad(t *testing.T) {
	var (
		g            guards
		users, alone atomic.Int32
		wait         sync.WaitGroup
	)
	for i := range 16 {
		wait.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(3))*time.Millisecond)
				switch release, err := g.share(ctx, "r"); {
				case err != nil:
				default:
					users.Add(1)
					if alone.Load() != 0 {
						t.Error("a user is beside one who has it alone")
					}
					users.Add(-1)
					release()
				}
				seize := g.seize
				if random.IntN(2) == 0 {
					seize = func(context.Context, string) (func(), error) {
						if release, ok := g.trySeize("r"); ok {
							return release, nil
						}
						return nil, keyedmutex.ErrBusy
					}
				}
				if release, err := seize(ctx, "r"); err == nil {
					if alone.Add(1) != 1 || users.Load() != 0 {
						t.Error("it is not had alone")
					}
					alone.Add(-1)
					release()
				}
				cancel()
			}
		})
	}
	wait.Wait()
	if len(g.of) != 0 {
		t.Errorf("%d guards are kept", len(g.of))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
