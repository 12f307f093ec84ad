package usage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

func (b *bench) hang(t *testing.T, volume string) (answer func()) {
	hang := make(chan struct{})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hangs[volume] = hang
	answer = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.hangs[volume] == hang {
			delete(b.hangs, volume)
			close(hang)
		}
	}
	t.Cleanup(answer)
	return answer
}

func TestAHungWalkDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.usage(t, "hung")
		answer := b.hang(t, "hung")
		time.Sleep(rest)
		b.Touch("hung")
		synctest.Wait()
		start := time.Now()
		b.usage(t, "other")
		if took := time.Since(start); took != hungAfter {
			t.Errorf("another volume waited for %s", took)
		}
		if got := b.usage(t, "hung"); got != 1 {
			t.Errorf("value %d, want the last one", got)
		}
		for range 10 {
			b.Touch("hung")
			time.Sleep(time.Hour)
			b.usage(t, "other")
		}
		if got := b.walks("hung"); got != 2 {
			t.Errorf("%d walks of a volume whose disk does not answer", got)
		}
		if got := strings.Count(b.lines.String(), "the disk does not answer"); got != 1 {
			t.Errorf("logged %s", b.lines.String())
		}
		answer()
		time.Sleep(rest + time.Second)
		if got := b.usage(t, "hung"); got != 3 {
			t.Errorf("value %d after the disk had answered", got)
		}
	})
}

func TestNoMoreWalksHangThanTheBoundAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var answers []func()
		for i := range hangable + 3 {
			name := fmt.Sprint("hung", i)
			answers = append(answers, b.hang(t, name))
			b.Touch(name)
		}
		time.Sleep(time.Hour)
		b.Touch("v")
		time.Sleep(time.Hour)
		b.mu.Lock()
		if got := len(b.started); got != hangable {
			t.Errorf("%d walks hang", got)
		}
		b.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Usage(ctx, "v"); !errors.Is(err, ErrNotMeasured) {
			t.Errorf("error %v", err)
		}
		for _, answer := range answers {
			answer()
		}
		if got := b.usage(t, "v"); got != 1 {
			t.Errorf("value %d", got)
		}
	})
}

func TestForgottenWhileItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		answer := b.hang(t, "v")
		if _, err := b.Usage(t.Context(), "v"); !errors.Is(err, errHung) {
			t.Errorf("error %v", err)
		}
		b.Forget("v")
		b.Touch("v")
		time.Sleep(time.Hour)
		if got := b.walks("v"); got != 1 {
			t.Errorf("%d walks hang", got)
		}
		answer()
		if got := b.usage(t, "v"); got != 2 {
			t.Errorf("value %d, want that of a new walk", got)
		}
	})
}

func TestRunEndsWhileAWalkHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		m := NewMeter(Config{Open: func(string) (*os.File, error) { <-hang; return nil, unix.EIO }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); m.Run(ctx) }()
		m.Touch("v")
		synctest.Wait()
		start := time.Now()
		cancel()
		<-done
		if took := time.Since(start); took > parting {
			t.Errorf("took %s", took)
		}
		close(hang)
	})
}

func TestAWalkThatPausesDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alive := &pulse{start: time.Now()}
		time.Sleep(hungAfter)
		if got := alive.silent(); got != hungAfter {
			t.Errorf("silent for %s", got)
		}
		alive.rest()
		time.Sleep(hungAfter)
		if got := alive.silent(); got != 0 {
			t.Errorf("silent for %s while it pauses", got)
		}
		alive.beat()
		time.Sleep(time.Second)
		if got := alive.silent(); got != time.Second {
			t.Errorf("silent for %s", got)
		}
	})
}

func TestATooDeepVolumeIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Meter.walk = func(context.Context, *os.File, *pulse) (Usage, error) { return Usage{Bytes: 1, AtLeast: true}, nil }
		for range 3 {
			b.usage(t, "v")
			time.Sleep(time.Hour)
		}
		if got := strings.Count(b.lines.String(), "too deep"); got != 1 {
			t.Errorf("logged %s", b.lines.String())
		}
	})
}

// A volume that is forgotten while its walk waits for the disk must not count as
// one that hangs when the disk has long answered.
func TestForgottenHungWalksAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range hangable {
			name := fmt.Sprint("v", i)
			answer := b.hang(t, name)
			b.Touch(name)
			time.Sleep(hungAfter / 3)
			b.Forget(name)
			time.Sleep(2 * hungAfter)
			answer()
			time.Sleep(time.Minute)
		}
		b.Touch("other")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := b.Usage(ctx, "other"); err != nil {
			t.Error(err)
		}
	})
}
