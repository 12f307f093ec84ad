package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A forge whose hook hangs keeps every push alive for its hour, and other forges' pushes are
// due meanwhile.
func TestRunsThatHangMakeWay(t *testing.T) {
	inSlots(t, func(r *runs) {
		for i := range 5 {
			r.push(fmt.Sprint("hangs/", i), time.Hour, ErrTimeout)
		}
		time.Sleep(time.Minute)
		r.push("well/1", time.Second, nil)
		time.Sleep(LookTimeout - time.Minute - time.Nanosecond)
		r.wantBegun("hangs/0", "hangs/1")
		time.Sleep(time.Nanosecond)
		r.wantBegun("hangs/0", "hangs/1", "well/1")
		r.wantOver("hangs/1")
		for i := range 20 {
			if waited, err := r.run(Pushing, "well/2", time.Second, nil); err != nil || waited > LookTimeout {
				t.Errorf("the push %d waited for %s, %v", i, waited, err)
			}
			time.Sleep(30 * time.Second)
		}
		time.Sleep(10 * time.Hour)
	})
}

// What takes long is let go on as long as nobody waits, or there is another slot.
func TestLongRunGoesOn(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.push("long/1", 50*time.Minute, nil)
		r.background("long/2", 50*time.Minute, nil)
		time.Sleep(51 * time.Minute)
		r.push("long/1", 50*time.Minute, nil)
		for range 100 {
			if waited, err := r.run(Asking, "well", time.Second, nil); err != nil || waited > 0 {
				t.Errorf("it waited for %s, %v", waited, err)
			}
		}
		time.Sleep(time.Hour)
		r.wantOver()
	})
}

// Of two runs that take long, that goes on of which more would be lost.
func TestWhichRunMakesWay(t *testing.T) {
	for _, row := range []struct {
		name          string
		first, second Errand
		over          string
	}{
		{"both ask", Asking, Asking, "b"},
		{"both push", Pushing, Pushing, "b"},
		{"the first asks", Asking, Pushing, "a"},
		{"the second asks", Pushing, Asking, "b"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inSlots(t, func(r *runs) {
				go func() { _, _ = r.run(row.first, "a", time.Hour, nil) }()
				time.Sleep(time.Second)
				go func() { _, _ = r.run(row.second, "b", time.Hour, nil) }()
				time.Sleep(10 * time.Minute)
				r.wantOver()
				r.background("well", time.Second, nil)
				time.Sleep(time.Second)
				r.wantOver(row.over)
				time.Sleep(2 * time.Hour)
			})
		})
	}
}

// Pods with many volumes, each of a server with a name of its own that sends a byte now and
// then, delay nobody else's runs for long, also when they come with new names.
func TestManyNamesThatDrip(t *testing.T) {
	inSlots(t, func(r *runs) {
		ctx, cancel := context.WithCancel(r.t.Context())
		defer cancel()
		drip := func(host string) {
			for ctx.Err() == nil {
				_, _ = r.run(Asking, host, time.Hour, ErrTimeout)
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
				}
			}
		}
		for i := range 20 {
			go drip(fmt.Sprint("drips", i))
		}
		synctest.Wait()
		longest := map[Errand]time.Duration{}
		for i := range 200 {
			if i%20 == 0 {
				go drip(fmt.Sprint("new", i))
			}
			for _, errand := range []Errand{Pushing, Asking} {
				waited, err := r.run(errand, "well", time.Second, nil)
				if err != nil {
					t.Error(err)
				}
				if i > 0 { // In the first round nothing is known of any of them.
					longest[errand] = max(longest[errand], waited)
				}
			}
			time.Sleep(time.Minute)
		}
		if longest[Pushing] > LookTimeout || longest[Asking] > 2*LookTimeout {
			t.Errorf("a push waited for %s, a look for %s", longest[Pushing], longest[Asking])
		}
	})
}

// A fetch that takes long by its nature comes to its end, however many others do not.
func TestLongRunComesToItsEnd(t *testing.T) {
	inSlots(t, func(r *runs) {
		ctx, cancel := context.WithCancel(r.t.Context())
		defer cancel()
		again := func(host string, takes, after time.Duration, ends error) {
			for ctx.Err() == nil {
				_, _ = r.run(Asking, host, takes, ends)
				select {
				case <-time.After(after):
				case <-ctx.Done():
				}
			}
		}
		for i := range 4 {
			go again(fmt.Sprint("drips", i), time.Hour, 10*time.Second, ErrTimeout)
		}
		go again("dead", time.Minute, 5*time.Minute, ErrStalled)
		go again("well", time.Second, 10*time.Second, nil)
		time.Sleep(time.Hour)
		began := time.Now()
		for {
			if _, err := r.run(Asking, "large", 25*time.Minute, nil); err == nil {
				break
			}
			if took := time.Since(began); took > 12*time.Hour {
				r.t.Fatalf("it is not done after %s", took)
			}
			time.Sleep(5 * time.Minute)
		}
	})
}

// What takes long keeps those that were silent waiting for a while, and not for as long as it
// may take.
func TestLongRunMakesWayForSuspects(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.background("dead", time.Minute, ErrStalled)
		time.Sleep(2 * time.Minute)
		r.push("long", time.Hour, nil)
		time.Sleep(5 * time.Minute)
		if waited, err := r.run(Asking, "dead", time.Second, nil); err != nil || waited != longTurn-5*time.Minute {
			t.Errorf("it waited for %s, %v", waited, err)
		}
		r.wantOver("long")
	})
}

// One that is slow is no suspect any more when it was quick.
func TestSlowRepositoryIsQuickAgain(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.push("a", time.Hour, nil)
		r.push("b", time.Hour, nil)
		r.push("c", time.Second, nil)
		time.Sleep(2 * time.Hour)
		r.wantOver("b")
		r.push("b", time.Second, nil)
		time.Sleep(time.Minute)
		if len(r.slots.slow) > 0 {
			t.Errorf("slow are %v", r.slots.slow)
		}
	})
}

func TestHostsHaveTheirTurns(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.background("x/1", time.Second, nil)
		r.background("y/1", time.Second, nil)
		for i := range 4 {
			r.background(fmt.Sprint("many/", i), time.Second, nil)
		}
		r.background("one/1", time.Second, nil)
		r.background("two/1", time.Second, nil)
		time.Sleep(time.Minute)
		r.wantBegun("x/1", "y/1", "many/0", "one/1", "many/1", "two/1", "many/2", "many/3")
	})
}

// Those who push go first, and do not keep those out who ask.
func TestPushesGoFirst(t *testing.T) {
	inSlots(t, func(r *runs) {
		r.push("long", time.Minute, nil)
		r.background("x", 10*time.Second, nil)
		for i := range 3 {
			r.background(fmt.Sprint("asks", i), 500*time.Millisecond, nil)
		}
		for i := range 6 {
			r.push(fmt.Sprint("pushes", i), 4*time.Second, nil)
		}
		time.Sleep(time.Minute)
		r.wantBegun("long", "x", "pushes0", "pushes1", "pushes2", "asks0", "asks1", "pushes3", "asks2", "pushes4", "pushes5")
	})
}

// One that waits is not overtaken for ever by those who come later, with whatever names.
func TestNobodyIsOvertakenForEver(t *testing.T) {
	inSlots(t, func(r *runs) {
		var last sync.WaitGroup
		for i := range 10 {
			last.Go(func() { _, _ = r.run(Asking, fmt.Sprint("many/", i), time.Second, nil) })
		}
		synctest.Wait()
		done := make(chan struct{})
		go func() {
			last.Wait()
			close(done)
		}()
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if i > 1000 {
				r.t.Fatal("the last of them has no turn")
			}
			go func() { _, _ = r.run(Asking, fmt.Sprint("new", i), time.Second, nil) }()
		}
	})
}

// The error says what happened, in words that are the same each time.
func TestTurnOver(t *testing.T) {
	if !errors.Is(ErrTurnOver, ErrTimeout) || ErrTurnOver.Error() != "the remote takes too long: its turn is over, and others wait" {
		t.Errorf("the error is %q", ErrTurnOver)
	}
}
