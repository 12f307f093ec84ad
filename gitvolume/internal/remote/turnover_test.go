package remote

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// elsewhere is a demand in a repository of a host of its own.
func elsewhere(host string, urgency Urgency, refs ...string) Demand {
	d := demand(host, urgency, refs...)
	d.Request.Remote.URL = attributes.URL{Scheme: "https", Host: host, Path: "r"}
	return d
}

// TestFetchThatTakesLongMakesWay has more fetches take long than there are slots.
func TestFetchThatTakesLongMakesWay(t *testing.T) {
	coordinated(t, 30*time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var calls sync.WaitGroup
		began := time.Now()
		for _, host := range []string{"a", "b"} {
			calls.Go(func() {
				_, err := f.Fetch(t.Context(), elsewhere(host, Background, "r"))
				if host == "a" {
					check(t, err)
					return
				}
				wantError(t, err, ErrTurnOver)
				if took := time.Since(began); took != LookTimeout {
					t.Errorf("it was called off after %s", took)
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		calls.Go(func() {
			_, err := f.Fetch(t.Context(), elsewhere("c", Background, "r"))
			check(t, err)
			if took := time.Since(began); took != LookTimeout+30*time.Minute {
				t.Errorf("the third was done after %s", took)
			}
		})
		calls.Wait()
		if fetcher.seen().most != 2 {
			t.Errorf("%d ran at a time", fetcher.seen().most)
		}
	})
}

// TestSomebodyWaitsForWhatTakesLong: that goes on, and its slot is another's.
func TestSomebodyWaitsForWhatTakesLong(t *testing.T) {
	coordinated(t, 30*time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var calls sync.WaitGroup
		fetch := func(host string, urgency Urgency) {
			calls.Go(func() {
				_, err := f.Fetch(t.Context(), elsewhere(host, urgency, "r"))
				check(t, err)
			})
			synctest.Wait()
		}
		fetch("a", Background)
		fetch("b", Background)
		time.Sleep(time.Minute)
		fetch("b", Foreground)
		fetch("c", Background)
		time.Sleep(time.Minute)
		synctest.Wait()
		if seen := fetcher.seen(); seen.running != 3 || len(seen.begun) != 3 {
			t.Errorf("%d run of %q", seen.running, seen.begun)
		}
		calls.Wait()
	})
}

// TestCallerWhoseTurnIsOver has its fetch end, unless it is somebody else's too.
func TestCallerWhoseTurnIsOver(t *testing.T) {
	for name, also := range map[string]bool{"wanted by nobody else": false, "wanted by a pod": true} {
		t.Run(name, func(t *testing.T) {
			coordinated(t, 10*time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
				var calls sync.WaitGroup
				ctx, callOff := context.WithCancelCause(t.Context())
				for range 2 { // The second waits behind the first.
					calls.Go(func() {
						_, err := f.FetchAnew(ctx, elsewhere("a", Foreground, "r"))
						wantError(t, err, ErrTurnOver)
					})
					synctest.Wait()
				}
				if also {
					within, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					_, err := f.Fetch(within, elsewhere("a", Foreground, "r"))
					wantError(t, err, ErrInProgress)
				}
				callOff(ErrTurnOver)
				calls.Wait()
				synctest.Wait()
				if seen := fetcher.seen(); (seen.running == 1) != also {
					t.Errorf("%d run of %q, which ended with %v", seen.running, seen.begun, seen.ended)
				}
				began := time.Now()
				_, err := f.Fetch(t.Context(), elsewhere("a", Foreground, "r"))
				check(t, err)
				if took := time.Since(began); took > 10*time.Minute || !also && took < 10*time.Minute {
					t.Errorf("the next took %s", took)
				}
			})
		})
	}
}

// TestHoldComesAfterTheSlot: nobody waits for a repository because it waits for other remotes.
func TestHoldComesAfterTheSlot(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var calls sync.WaitGroup
		for _, host := range []string{"a", "b"} {
			calls.Go(func() { _, _ = f.Fetch(t.Context(), elsewhere(host, Background, "r")) })
		}
		synctest.Wait()
		began, held := time.Now(), time.Duration(0)
		d := elsewhere("c", Background, "r")
		d.Hold = func(context.Context) (func(), error) {
			if waited := time.Since(began); waited != time.Minute {
				t.Errorf("it is held after %s", waited)
			}
			taken := time.Now()
			return func() { held = time.Since(taken) }, nil
		}
		_, err := f.Fetch(t.Context(), d)
		check(t, err)
		calls.Wait()
		if held != time.Minute {
			t.Errorf("it was held for %s", held)
		}
		d.Hold = func(context.Context) (func(), error) { return nil, errShallow }
		_, err = f.FetchAnew(t.Context(), d)
		wantError(t, err, errShallow)
		if n := len(fetcher.seen().begun); n != 3 {
			t.Errorf("there were %q", fetcher.seen().begun)
		}
	})
}
