package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"liken.sh/csicommon/csitest/logtest"
)

// bench is a Meter whose walks are made up: each takes what takes says and
// gives the number of walks of the volume so far as Bytes.
type bench struct {
	*Meter
	lines logtest.Log

	mu      sync.Mutex
	takes   map[string]time.Duration
	fails   map[string]error
	started []string
	count   map[string]int64
	running int
	hangs   map[string]chan struct{} // A walk of it gets no answer until this is closed.
}

func newBench(t *testing.T) *bench {
	b := &bench{takes: map[string]time.Duration{}, fails: map[string]error{}, count: map[string]int64{}, hangs: map[string]chan struct{}{}}
	b.Meter = NewMeter(Config{Open: b.opened, Log: b.lines.Logger()})
	b.Meter.walk = b.walked
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); b.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return b
}

// opened notes the volume for walked, which comes next: there is one worker.
func (b *bench) opened(volume string) (*os.File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.HasPrefix(volume, "missing") {
		return nil, fmt.Errorf("open it: %w", fs.ErrNotExist)
	}
	b.started = append(b.started, volume)
	b.count[volume]++
	return os.Open(os.DevNull)
}

func (b *bench) walked(ctx context.Context, _ *os.File, alive *pulse) (Usage, error) {
	b.mu.Lock()
	volume := b.started[len(b.started)-1]
	if hang := b.hangs[volume]; hang != nil {
		b.mu.Unlock()
		<-hang
		return Usage{}, ctx.Err()
	}
	alive.rest() // The others take as long as they take.
	usage, err, takes := Usage{Bytes: b.count[volume], Inodes: 1}, b.fails[volume], b.takes[volume]
	b.running++
	if b.running > 1 {
		panic("two walks at a time")
	}
	b.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	return usage, err
}

func (b *bench) walks(volume string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count[volume]
}

func (b *bench) fail(volume string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails[volume] = err
}

func (b *bench) usage(t *testing.T, volume string) int64 {
	t.Helper()
	usage, err := b.Usage(t.Context(), volume)
	if err != nil {
		t.Fatal(err)
	}
	return usage.Bytes
}

func TestUsageWaitsForTheFirstMeasurementOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.takes["v"] = 10 * time.Second
		start := time.Now()
		if got := b.usage(t, "v"); got != 1 || time.Since(start) != 10*time.Second {
			t.Errorf("value %d after %s", got, time.Since(start))
		}
		if last, at, ok := b.Last("v"); !ok || last.Bytes != 1 || !at.Equal(time.Now()) {
			t.Errorf("Last: %+v %v %v", last, at, ok)
		}
		time.Sleep(time.Hour)
		start = time.Now()
		if got := b.usage(t, "v"); got != 1 || time.Since(start) != 0 {
			t.Errorf("value %d after %s, want the old one at once", got, time.Since(start))
		}
		time.Sleep(11 * time.Second)
		if got := b.usage(t, "v"); got != 2 {
			t.Errorf("value %d, want the one the last call caused", got)
		}
	})
}

func TestUsageGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.takes["v"] = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.Usage(ctx, "v")
		if !errors.Is(err, ErrNotMeasured) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		time.Sleep(time.Minute)
		if got, err := b.Usage(ctx, "v"); err != nil || got.Bytes != 1 {
			t.Errorf("value %+v, error %v: a value that is there needs no time", got, err)
		}
	})
}

func TestAVolumeIsWalkedNoMoreOftenThanTheBoundAllows(t *testing.T) {
	for _, row := range []struct {
		name  string
		takes time.Duration
		want  int64 // Walks in ten hours.
	}{
		{"a small volume, once a minute", 0, 601},
		{"a second each, still once a minute", time.Second, 591},
		{"a million files, a minute each, a fiftieth of the time", time.Minute, 12},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.takes["v"] = row.takes
				for start := time.Now(); time.Since(start) < 10*time.Hour; time.Sleep(time.Second) {
					b.Touch("v")
					b.usage(t, "v")
				}
				if got := b.walks("v"); got > row.want || got < row.want*95/100 {
					t.Errorf("%d walks, want about %d", got, row.want)
				}
			})
		})
	}
}

func TestAVolumeNobodyAsksForIsNotWalked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.usage(t, "v")
		time.Sleep(24 * time.Hour)
		for range 100 {
			b.Last("v")
		}
		synctest.Wait()
		if got := b.walks("v"); got != 1 {
			t.Errorf("%d walks", got)
		}
	})
}

func TestANewVolumeGoesBeforeOldOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.takes["slow"] = time.Second
		for _, volume := range []string{"a", "b", "c"} {
			b.usage(t, volume)
		}
		time.Sleep(time.Hour)
		b.Touch("slow")
		synctest.Wait()
		for _, volume := range []string{"a", "b", "c", "new"} {
			b.Touch(volume)
		}
		time.Sleep(2 * time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		if got := strings.Join(b.started[3:5], " "); got != "slow new" {
			t.Errorf("walked %q", b.started)
		}
		if len(b.started) != 8 {
			t.Errorf("walked %q, want all", b.started)
		}
	})
}

func TestAFailedWalkKeepsTheLastValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.usage(t, "v")
		b.fail("v", errors.New("input/output error"))
		b.Touch("v")
		time.Sleep(time.Hour)
		if got := b.usage(t, "v"); got != 1 {
			t.Errorf("value %d", got)
		}
		if got := b.walks("v"); got < 50 || got > 61 {
			t.Errorf("%d attempts in an hour", got)
		}
		if got := strings.Count(b.lines.String(), "\n"); got != 1 {
			t.Errorf("%d lines: %s", got, b.lines.String())
		}
		b.fail("v", errors.New("another error"))
		time.Sleep(time.Hour)
		if got := strings.Count(b.lines.String(), "\n"); got != 2 {
			t.Errorf("%d lines: %s", got, b.lines.String())
		}
		b.fail("v", nil)
		time.Sleep(2 * time.Minute)
		walks := b.walks("v")
		if got, _, _ := b.Last("v"); got.Bytes != walks {
			t.Errorf("value %d of walk %d", got.Bytes, walks)
		}
		time.Sleep(time.Hour)
		if got := b.walks("v"); got != walks {
			t.Errorf("%d walks after it was well again and nobody asked", got-walks)
		}
	})
}

func TestAFailedFirstWalkLetsTheCallerGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		broken := errors.New("input/output error")
		b.fail("v", broken)
		for range 2 {
			start := time.Now()
			_, err := b.Usage(t.Context(), "v")
			if !errors.Is(err, ErrNotMeasured) || !errors.Is(err, broken) || time.Since(start) != 0 {
				t.Errorf("error %v after %s", err, time.Since(start))
			}
		}
		if _, _, ok := b.Last("v"); ok {
			t.Error("Last has a value")
		}
	})
}

func TestAMissingVolumeIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		_, err := b.Usage(t.Context(), "missing")
		if !errors.Is(err, ErrNotMeasured) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
		b.Touch("missing too")
		synctest.Wait()
		b.Meter.mu.Lock()
		defer b.Meter.mu.Unlock()
		if len(b.volumes) != 0 {
			t.Errorf("still known: %v", b.volumes)
		}
		if b.lines.String() != "" {
			t.Errorf("logged %s", b.lines.String())
		}
	})
}

func TestForgetEndsTheWalkAndTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.takes["v"] = 30 * time.Minute
		start := time.Now()
		time.AfterFunc(time.Second, func() { b.Forget("v") })
		if _, err := b.Usage(t.Context(), "v"); !errors.Is(err, ErrNotMeasured) {
			t.Errorf("error %v", err)
		}
		b.usage(t, "other")
		if took := time.Since(start); took != time.Second {
			t.Errorf("the worker was held up for %s", took)
		}
		if _, _, ok := b.Last("v"); ok {
			t.Error("a forgotten volume has a value")
		}
		b.takes["v"] = 0
		if got := b.usage(t, "v"); got != 2 {
			t.Errorf("value %d, want that of a new walk", got)
		}
		b.Forget("never known")
	})
}

func TestAWalkWithoutEndIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.takes["endless"] = 1000 * time.Hour
		b.Touch("endless")
		synctest.Wait()
		start := time.Now()
		b.usage(t, "v")
		if took := time.Since(start); took != limit {
			t.Errorf("another volume waited for %s", took)
		}
		if !strings.Contains(b.lines.String(), "more than 1h") {
			t.Errorf("logged %s", b.lines.String())
		}
	})
}

func TestMeterOnRealFiles(t *testing.T) {
	store := t.TempDir()
	for _, volume := range []string{"a", "b", "c"} {
		check(t, os.Mkdir(filepath.Join(store, volume), 0o755))
		write(t, filepath.Join(store, volume, "f"), 10_000)
	}
	var lines logtest.Log
	m := NewMeter(Config{
		Open: func(volume string) (*os.File, error) { return os.Open(filepath.Join(store, volume)) },
		Log:  lines.Logger(),
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group, asked sync.WaitGroup
	group.Go(func() { m.Run(ctx) })
	for _, volume := range []string{"a", "b", "c"} {
		for range 10 {
			asked.Go(func() {
				got, err := m.Usage(ctx, volume)
				if want := (Usage{Bytes: got.Bytes, Inodes: 2}); err != nil || got != want || got.Bytes < 10_000 {
					t.Errorf("%s: %+v, %v", volume, got, err)
				}
				m.Touch(volume)
				m.Last(volume)
			})
		}
	}
	if _, err := m.Usage(ctx, "d"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	asked.Wait()
	cancel()
	group.Wait()
	if lines.String() != "" {
		t.Errorf("logged %s", lines.String())
	}
}
