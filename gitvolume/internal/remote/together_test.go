package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func as(number byte, opened *int, d Demand) Demand {
	d.Credential = fixed{number, opened}
	return d
}

// TestManyVolumesOfARepository: what waits while a fetch runs is fetched together, each
// volume's own refs too.
func TestManyVolumesOfARepository(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var volumes sync.WaitGroup
		observed := 0
		start := time.Now()
		for i := range 100 {
			volumes.Go(func() {
				d := demand("r", Foreground, "refs/heads/main", fmt.Sprintf("refs/heads/side-%d", i))
				d.Observe = func(took time.Duration, err error) {
					if observed++; took != time.Minute || err != nil {
						t.Errorf("observed %s, %v", took, err)
					}
				}
				fetched, err := f.Fetch(t.Context(), d)
				if err != nil || len(fetched) != 2 {
					t.Errorf("%v, %v", fetched, err)
				}
			})
		}
		volumes.Wait()
		if n := len(fetcher.seen().begun); n > 2 || observed != n || time.Since(start) > 2*time.Minute {
			t.Errorf("%d fetches, %d observed, after %s", n, observed, time.Since(start))
		}
	})
}

// TestTogetherOnlyWithinAScope: fetches of one repository wait for each other, and one is made
// for each credential, set of limits and depth.
func TestTogetherOnlyWithinAScope(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var opened int
		limited := demand("r", Foreground, "refs/heads/c")
		limited.Request.Remote.Limits = "few"
		shallow := demand("r", Foreground, "refs/heads/d")
		shallow.Request.Depth = 1
		var calls sync.WaitGroup
		begin := func(d Demand) {
			calls.Go(func() {
				if _, err := f.Fetch(t.Context(), d); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		begin(demand("r", Foreground, "refs/heads/x"))
		for _, ref := range []string{"refs/heads/a", "refs/heads/b"} {
			begin(as(1, &opened, demand("r", Foreground, ref)))
			begin(as(2, &opened, demand("r", Foreground, ref)))
			begin(demand("r", Foreground, ref))
			begin(limited)
			begin(shallow)
		}
		begin(demand("r", Foreground, strings.Repeat("1", 40))) // A commit that is missing fails all.
		calls.Wait()
		want := []string{
			"rrefs/heads/x", "rrefs/heads/a,refs/heads/b", "rrefs/heads/a,refs/heads/b", "rrefs/heads/a,refs/heads/b",
			"rrefs/heads/c", "rrefs/heads/d", "r" + strings.Repeat("1", 40),
		}
		if got := fetcher.seen(); strings.Join(got.begun, " ") != strings.Join(want, " ") || got.most != 1 || opened != 0 {
			t.Errorf("there were %q, %d at a time; %d sessions are open", got.begun, got.most, opened)
		}
	})
}

// TestForegroundGoesFirst: what nobody waits for is behind what somebody waits for, whatever
// came first.
func TestForegroundGoesFirst(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, _ *slowly) {
		var opened int
		var calls sync.WaitGroup
		for i := range 50 {
			calls.Go(func() { _, _ = f.Fetch(t.Context(), as(byte(i+1), &opened, demand("r", Background, "refs/heads/a"))) })
		}
		synctest.Wait()
		start := time.Now()
		_, err := f.Fetch(t.Context(), demand("r", Foreground, "refs/heads/a"))
		if took := time.Since(start); err != nil || took != 2*time.Minute {
			t.Errorf("it took %s, %v", took, err)
		}
		calls.Wait()
	})
}

// TestOneBadRefOfSeveral: it fails who asked for it and nobody else; what fails of the remote
// is not tried again for each.
func TestOneBadRefOfSeveral(t *testing.T) {
	for _, row := range []struct {
		name   string
		err    error
		begun  int
		failed string
	}{
		{"a broken ref", &Failure{Kind: ErrFailed}, 5, "b"},
		{"a silent remote", &Failure{Kind: ErrStalled}, 2, "abc"},
		{"a server that fails", &Failure{Kind: ErrFailed, HTTPStatus: 503}, 2, "abc"},
	} {
		t.Run(row.name, func(t *testing.T) {
			coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
				fetcher.fails = func(refs map[string]string) error {
					if refs["refs/heads/b"] != "" {
						return row.err
					}
					return nil
				}
				var calls sync.WaitGroup
				var failed [4]string
				for i, name := range []string{"x", "a", "b", "c"} {
					calls.Go(func() {
						if _, err := f.Fetch(t.Context(), demand("r", Foreground, "refs/heads/"+name)); err != nil {
							failed[i] = name
						}
					})
					synctest.Wait()
				}
				calls.Wait()
				if got := strings.Join(failed[:], ""); got != row.failed || len(fetcher.seen().begun) != row.begun {
					t.Errorf("%q failed; there were %q", got, fetcher.seen().begun)
				}
			})
		})
	}
}

// TestACallThatWasCut: what was brought for it after it came is not fetched again, unless it
// is old, or as somebody else, or of another ref, or wanted anew.
func TestACallThatWasCut(t *testing.T) {
	coordinated(t, time.Minute, func(t *testing.T, f *Fetches, fetcher *slowly) {
		var opened int
		came := time.Now()
		since := func(d Demand) Demand { d.Since = came; return d }
		want := func(n int, d Demand, by func(context.Context, Demand) (map[string]Fetched, error)) {
			t.Helper()
			fetched, err := by(t.Context(), d)
			if err != nil || len(fetched) != len(d.Request.Refs) {
				t.Errorf("%v, %v", fetched, err)
			}
			if got := len(fetcher.seen().begun); got != n {
				t.Errorf("there were %d fetches, want %d", got, n)
			}
		}
		a, both := since(demand("r", Foreground, "refs/heads/a")), since(demand("r", Foreground, "refs/heads/a", "refs/heads/b"))
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if _, err := f.Fetch(ctx, a); !errors.Is(err, ErrInProgress) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		want(1, a, f.Fetch)
		want(2, as(1, &opened, a), f.Fetch)
		want(3, both, f.Fetch)
		want(3, both, f.Fetch)
		want(4, a, f.FetchAnew)
		want(5, demand("r", Foreground, "refs/heads/a"), f.Fetch)
		later := a
		later.Since = time.Now()
		time.Sleep(time.Second)
		want(6, later, f.Fetch)
		time.Sleep(knownFor)
		want(7, a, f.Fetch)
	})
}
