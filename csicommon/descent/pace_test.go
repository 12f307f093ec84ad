package descent

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestPaceTakesHalfOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const entries, each = 100_000, time.Millisecond
		var pace Pace
		start := time.Now()
		for range entries {
			if err := pace.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(each) // The work on an entry.
		}
		took, work := time.Since(start), entries*each
		if took < work*19/10 || took > work*21/10 {
			t.Errorf("%s of work took %s", work, took)
		}
	})
}

func TestPaceEndsInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), stride*time.Second+time.Minute)
		defer cancel()
		var pace Pace
		start := time.Now()
		var err error
		for err == nil {
			err = pace.Step(ctx)
			time.Sleep(time.Second)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if took := time.Since(start); took > stride*time.Second+2*time.Minute {
			t.Errorf("ended after %s", took)
		}
	})
}
