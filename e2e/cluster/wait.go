package cluster

import (
	"testing"
	"time"
)

// Eventually waits until check is satisfied, and fails the test with check's last
// complaint when that takes longer than within.
func Eventually(t testing.TB, within time.Duration, what string, check func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := check()
		if err == nil {
			t.Logf("%s, after %s", what, time.Since(began).Round(time.Second))
			return
		}
		if time.Since(began) > within {
			t.Fatalf("waited %s for: %s\nstill: %v", within, what, err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// Steadily checks again and again for that long, and fails the test as soon as
// check complains.
func Steadily(t testing.TB, during time.Duration, what string, check func() error) {
	t.Helper()
	for began := time.Now(); time.Since(began) < during; time.Sleep(500 * time.Millisecond) {
		if err := check(); err != nil {
			t.Fatalf("%s: after %s: %v", what, time.Since(began).Round(time.Second), err)
		}
	}
}
