package remote

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// glancing is a Lister whose looks take their time and are noted.
type glancing struct {
	takes time.Duration
	err   error

	mu            sync.Mutex
	begun         []string
	running, most int
}

func (g *glancing) List(ctx context.Context, _ Remote, names ...string) (*Refs, error) {
	g.mu.Lock()
	g.begun = append(g.begun, strings.Join(names, ","))
	g.running++
	g.most = max(g.most, g.running)
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.running--
	}()
	select {
	case <-time.After(g.takes):
		return &Refs{}, g.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func glanceAt(names ...string) Glance { return Glance{Names: names} }

func TestLooksAreShared(t *testing.T) {
	var opened int
	other := Glance{Names: []string{"a"}, Credential: fixed{1, &opened}}
	for _, row := range []struct {
		name  string
		looks []Glance
		anew  bool
		begun string
		takes time.Duration
	}{
		{"the same", []Glance{glanceAt("a"), glanceAt("a"), glanceAt("a")}, false, "a", time.Minute},
		{"others", []Glance{glanceAt("a"), glanceAt("b"), glanceAt("c")}, false, "a b,c", 2 * time.Minute},
		{"anew", []Glance{glanceAt("a"), glanceAt("a"), glanceAt("a")}, true, "a a", 2 * time.Minute},
		{"another credential", []Glance{glanceAt("a"), other}, false, "a a", time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lister := &glancing{takes: time.Minute}
				looks := NewLooks(lister)
				by := looks.Look
				if row.anew {
					by = looks.LookAnew
				}
				start := time.Now()
				var calls sync.WaitGroup
				for _, g := range row.looks {
					calls.Go(func() {
						if refs, err := by(t.Context(), g); err != nil || refs == nil {
							t.Errorf("%v, %v", refs, err)
						}
					})
					synctest.Wait()
				}
				calls.Wait()
				if got := strings.Join(lister.begun, " "); got != row.begun || time.Since(start) != row.takes || opened != 0 {
					t.Errorf("looked for %q in %s; %d sessions are open", got, time.Since(start), opened)
				}
				synctest.Wait()
				if len(looks.of) != 0 {
					t.Errorf("%d repositories are kept", len(looks.of))
				}
			})
		})
	}
}

// TestALookThatFails fails all who wait for it, and is told once. One that was called off is
// no failure.
func TestALookThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lister := &glancing{takes: time.Hour}
		looks := NewLooks(lister)
		failed := 0
		g := Glance{Names: []string{"a"}, Failed: func() { failed++ }}
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() {
				if _, err := looks.Look(t.Context(), g); !errors.Is(err, ErrTimeout) {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if failed != 1 || len(lister.begun) != 1 {
			t.Errorf("%d looks failed of %q", failed, lister.begun)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := looks.Look(ctx, g); !errors.Is(err, context.DeadlineExceeded) || lister.running != 0 || failed != 1 {
			t.Errorf("%v, %d run, %d failed", err, lister.running, failed)
		}
		synctest.Wait()
	})
}
