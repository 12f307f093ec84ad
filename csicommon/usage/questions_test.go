package usage

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// While a disk hangs, whoever asks about it is told so in time and one question waits, and
// another volume's disk answers. Once it answers, so do questions.
func TestQuestionsAboutADiskThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var questions Questions
		hang := make(chan struct{})
		var waiting atomic.Int32
		hung := func() (Space, error) {
			waiting.Add(1)
			<-hang
			return Space{Bytes: 1}, nil
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := questions.Space(ctx, "hung", hung); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a disk that hangs answers %v", err)
			}
			cancel()
		}
		if n := waiting.Load(); n != 1 {
			t.Errorf("%d questions wait, want 1", n)
		}
		want := Space{Bytes: 2}
		if got, err := questions.Space(t.Context(), "other", func() (Space, error) { return want, nil }); got != want || err != nil {
			t.Errorf("another disk answers %v, %v", got, err)
		}
		close(hang)
		if got, err := questions.Space(t.Context(), "hung", hung); err != nil || got.Bytes != 1 {
			t.Errorf("a disk that answers again answers %v, %v", got, err)
		}
	})
}
