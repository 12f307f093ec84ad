package remote

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// What a call waits for leaves it the time to be answered.
func TestPatience(t *testing.T) {
	for name, row := range map[string]struct{ left, most, want time.Duration }{
		"no deadline":        {0, time.Hour, time.Hour},
		"less than there is": {time.Minute, 20 * time.Second, 20 * time.Second},
		"more than there is": {time.Minute, time.Hour, 50 * time.Second},
		"a short call":       {9 * time.Second, time.Hour, 6 * time.Second},
		"nothing to wait":    {time.Minute, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if row.left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, row.left)
				defer cancel()
			}
			if got := Patience(ctx, row.most); got != row.want {
				t.Errorf("%s: %s, want %s", name, got, row.want)
			}
		})
	}
}
