package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/gitvolume/internal/attributes"
)

// slowly is a Fetcher whose fetches take their time and are noted.
type slowly struct {
	takes time.Duration
	// fails is what a fetch of these refs ends with; nil: it does not fail.
	fails func(refs map[string]string) error

	mu      sync.Mutex
	begun   []string
	running int
	most    int
	ended   []error
}

func (s *slowly) Fetch(ctx context.Context, request Request) (map[string]Fetched, error) {
	s.mu.Lock()
	s.begun = append(s.begun, request.Dir+strings.Join(slices.Sorted(maps.Keys(request.Refs)), ","))
	s.running++
	s.most = max(s.most, s.running)
	s.mu.Unlock()
	request.Progress(Progress{Phase: "Receiving objects", Percent: 40, Bytes: 17})
	var err error
	select {
	case <-time.After(s.takes):
		if s.fails != nil {
			err = s.fails(request.Refs)
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.ended = append(s.ended, err)
	fetched := map[string]Fetched{}
	for from := range request.Refs {
		fetched[from] = Fetched{Gone: true}
	}
	return fetched, err
}

// seen is a copy of what was noted.
func (s *slowly) seen() *slowly {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &slowly{begun: slices.Clone(s.begun), running: s.running, most: s.most, ended: slices.Clone(s.ended)}
}

// fixed is a credential that is known by a number.
type fixed struct {
	number byte
	opened *int
}

func (f fixed) Identity() [32]byte { return [32]byte{f.number} }
func (f fixed) Open() (Session, func(), error) {
	*f.opened++
	return nil, func() { *f.opened-- }, nil
}

func demand(dir string, urgency Urgency, refs ...string) Demand {
	d := Demand{Request: Request{Dir: dir, Refs: map[string]string{}}, Urgency: urgency}
	for _, ref := range refs {
		d.Request.Refs[ref] = "refs/x/" + ref
	}
	return d
}

// coordinated runs the test with Fetches in a bubble of its own time.
func coordinated(t *testing.T, takes time.Duration, test func(t *testing.T, f *Fetches, fetcher *slowly)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fetcher := &slowly{takes: takes}
		f := NewFetches(FetchesSettings{Fetcher: fetcher, Slots: NewSlots(2), Timeout: time.Hour})
		defer f.Close()
		test(t, f, fetcher)
	})
}

func TestTenPodsCostOneFetch(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var pods sync.WaitGroup
		for i := range 10 {
			pods.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				fetched, err := f.Fetch(t.Context(), demand("r", Foreground, "a"))
				if err != nil || len(fetched) != 1 {
					t.Errorf("%v, %v", fetched, err)
				}
			})
		}
		pods.Wait()
		if len(fetcher.seen().begun) != 1 {
			t.Errorf("there were %q", fetcher.seen().begun)
		}
	})
}

// TestWhoJoins: what a running fetch does not cover waits for its turn.
func TestWhoJoins(t *testing.T) {
	var opened int
	with := func(number byte, d Demand) Demand { d.Credential = fixed{number, &opened}; return d }
	strict := demand("r", Foreground, "a")
	strict.Request.Remote.Permit = func(string, netip.AddrPort) error { return nil }
	stricter := demand("r", Foreground, "a")
	stricter.Request.Remote.Permit, stricter.Request.Remote.Limits = strict.Request.Remote.Permit, "no loopback"
	shallow := demand("r", Foreground, "a")
	shallow.Request.Depth = 1
	for _, row := range []struct {
		name          string
		first, second Demand
		joins         bool
	}{
		{"the same", demand("r", Foreground, "a"), demand("r", Foreground, "a"), true},
		{"fewer refs", demand("r", Foreground, "a", "b"), demand("r", Foreground, "b"), true},
		{"more refs", demand("r", Foreground, "a"), demand("r", Foreground, "a", "b"), false},
		{"the same credential", with(1, demand("r", Foreground, "a")), with(1, demand("r", Foreground, "a")), true},
		{"another credential", with(1, demand("r", Foreground, "a")), with(2, demand("r", Foreground, "a")), false},
		{"no credential", with(1, demand("r", Foreground, "a")), demand("r", Foreground, "a"), false},
		{"another depth", demand("r", Foreground, "a"), shallow, false},
		{"may reach less", strict, stricter, false},
		{"may reach as much", stricter, stricter, true},
		{"may not reach everything", demand("r", Foreground, "a"), strict, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
				var calls sync.WaitGroup
				start := time.Now()
				for i, d := range []Demand{row.first, row.second} {
					calls.Go(func() {
						time.Sleep(time.Duration(i) * time.Second)
						if _, err := f.Fetch(t.Context(), d); err != nil {
							t.Error(err)
						}
					})
				}
				calls.Wait()
				if joined := len(fetcher.seen().begun) == 1; joined != row.joins || fetcher.seen().most != 1 {
					t.Errorf("there were %q, %d at a time", fetcher.seen().begun, fetcher.seen().most)
				}
				if took := time.Since(start); !row.joins && took != 2*time.Minute {
					t.Errorf("one after the other took %s", took)
				}
				if opened != 0 {
					t.Errorf("%d sessions are open", opened)
				}
			})
		})
	}
}

func TestAnswerBeforeTheDeadline(t *testing.T) {
	coordinated(t, 10*time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		for call := 1; ; call++ {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			start := time.Now()
			_, err := f.Fetch(ctx, demand("r", Foreground, "a"))
			took := time.Since(start)
			cancel()
			if err == nil {
				if call != 6 {
					t.Errorf("the fetch was over in call %d", call)
				}
				break
			}
			wantError(t, err, ErrInProgress)
			if took != 110*time.Second || !strings.Contains(err.Error(), "Receiving objects, 40 %, 17 bytes received") {
				t.Errorf("after %s: %v", took, err)
			}
		}
		if len(fetcher.seen().begun) != 1 {
			t.Errorf("there were %q", fetcher.seen().begun)
		}
	})
}

// TestShortCall: a call that has less than the usual reserve waits all the same.
func TestShortCall(t *testing.T) {
	coordinated(t, 5*time.Second, func(t *testing.T, f *Fetches, _ *slowly) {
		for call := 1; call <= 2; call++ {
			ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
			start := time.Now()
			_, err := f.Fetch(ctx, demand("r", Foreground, "a"))
			cancel()
			took, want := time.Since(start), time.Second
			if call == 1 {
				wantError(t, err, ErrInProgress)
				want = 4 * time.Second
			} else {
				check(t, err)
			}
			if took != want {
				t.Errorf("call %d took %s, want %s", call, took, want)
			}
		}
	})
}

// TestNobodyWaits: the fetch goes on, within its own bound.
func TestNobodyWaits(t *testing.T) {
	coordinated(t, 2*time.Hour, func(t *testing.T, f *Fetches, fetcher *slowly) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Second)
			cancel()
		}()
		_, err := f.Fetch(ctx, demand("r", Foreground, "a"))
		wantError(t, err, context.Canceled)
		time.Sleep(time.Hour - 2*time.Second)
		if len(fetcher.seen().ended) != 0 {
			t.Error("it ended with its caller")
		}
		time.Sleep(2 * time.Second)
		if len(fetcher.seen().ended) != 1 || !errors.Is(fetcher.seen().ended[0], context.DeadlineExceeded) {
			t.Errorf("its own bound gives %v", fetcher.seen().ended)
		}
	})
}

func TestTwoInTheBackground(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var calls sync.WaitGroup
		for i := range 6 {
			calls.Go(func() {
				if _, err := f.Fetch(t.Context(), demand(fmt.Sprint(i), Background, "a")); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Second)
		if fetcher.seen().running != 2 {
			t.Errorf("%d run in the background", fetcher.seen().running)
		}
		start := time.Now()
		// One of a repository of its own, and one that somebody now waits for.
		for _, dir := range []string{"x", "5"} {
			calls.Go(func() {
				_, err := f.Fetch(t.Context(), demand(dir, Foreground, "a"))
				if took := time.Since(start); err != nil || took > time.Minute {
					t.Errorf("%s took %s, %v", dir, took, err)
				}
			})
		}
		calls.Wait()
		if fetcher.seen().most > 4 || len(fetcher.seen().begun) != 7 {
			t.Errorf("%q, %d at a time", fetcher.seen().begun, fetcher.seen().most)
		}
		_, release, err := f.settings.Slots.Take(t.Context(), attributes.URL{}, Asking)
		check(t, err)
		release(nil)
		release(nil)
	})
}

// TestSomebodyWaitsBehindTheBackground: what a pod waits for is fetched at once, with what
// waits in its repository for a slot, or all slots of slow remotes would hold it up.
func TestSomebodyWaitsBehindTheBackground(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var calls sync.WaitGroup
		for i, dir := range []string{"slow", "slower", "r"} {
			calls.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				_, _ = f.Fetch(t.Context(), demand(dir, Background, "refs/heads/a"))
			})
		}
		time.Sleep(3 * time.Second)
		start := time.Now()
		_, err := f.Fetch(t.Context(), demand("r", Foreground, "refs/heads/b"))
		if took := time.Since(start); err != nil || took != time.Minute {
			t.Errorf("it took %s, %v; there were %q", took, err, fetcher.seen().begun)
		}
		calls.Wait()
		if n := len(fetcher.seen().begun); n != 3 {
			t.Errorf("there were %q", fetcher.seen().begun)
		}
	})
}

// TestABurstOfDemands costs one fetch more than the one that ran already.
func TestABurstOfDemands(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = f.Fetch(t.Context(), demand("r", Background, "a")) })
		synctest.Wait()
		for range 20 {
			calls.Go(func() {
				if _, err := f.FetchAnew(t.Context(), demand("r", Foreground, "a")); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if len(fetcher.seen().begun) != 2 {
			t.Errorf("there were %q", fetcher.seen().begun)
		}
	})
}

func TestCloseEndsFetches(t *testing.T) {
	coordinated(t, time.Hour, func(t *testing.T, f *Fetches, fetcher *slowly) {
		for _, dir := range []string{"1", "2", "3"} {
			go func() { _, _ = f.Fetch(t.Context(), demand(dir, Background, "a")) }()
		}
		synctest.Wait()
		start := time.Now()
		f.Close()
		if time.Since(start) > time.Second || fetcher.seen().running > 0 || len(fetcher.seen().begun) != 2 {
			t.Errorf("%d run after %s; there were %q", fetcher.seen().running, time.Since(start), fetcher.seen().begun)
		}
		if _, err := f.Fetch(t.Context(), demand("4", Foreground, "a")); err == nil {
			t.Error("a fetch succeeds after the end")
		}
	})
}
