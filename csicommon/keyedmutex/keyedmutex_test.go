package keyedmutex

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneHolderAKey(t *testing.T) {
	var m Mutex
	var group sync.WaitGroup
	inside := 0
	for range 50 {
		group.Go(func() {
			unlock, err := m.Lock(t.Context(), "h1")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			inside++ // the race detector is the judge of who is in here
			if inside != 1 {
				t.Errorf("%d holders", inside)
			}
			inside--
		})
	}
	group.Wait()
	if len(m.locks) != 0 {
		t.Errorf("%d keys left behind", len(m.locks))
	}
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	var m Mutex
	unlock, err := m.Lock(t.Context(), "h1")
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	other, err := m.Lock(t.Context(), "h2")
	if err != nil {
		t.Fatal(err)
	}
	other()
}

func TestWaiterGivesUpAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Mutex
		unlock, err := m.Lock(t.Context(), "h1")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Lock(ctx, "h1"); !errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock = %v, want ErrBusy and DeadlineExceeded", err)
		}
		unlock()
		again, err := m.Lock(t.Context(), "h1")
		if err != nil {
			t.Fatalf("after the holder left: %v", err)
		}
		again()
		if len(m.locks) != 0 {
			t.Errorf("%d keys left behind", len(m.locks))
		}
	})
}
