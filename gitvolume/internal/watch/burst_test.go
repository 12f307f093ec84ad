package watch

import (
	"testing"
	"time"
)

func TestBurstVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		queue, events int
		each          time.Duration
		many, flood   int
	}{
		"a trickle":                      {16384, 100_000, time.Second, 0, 0},
		"a busy application":             {16384, 100_000, 2 * time.Millisecond, 0, 0},
		"unpacking":                      {16384, 100_000, 100 * time.Microsecond, 12, 0},
		"a stopped process goes on":      {16384, 16384, 10 * time.Microsecond, 1, 1},
		"a starved process goes on":      {16384, 16384, 500 * time.Microsecond, 2, 0},
		"half a queue that was full":     {16384, 8192, 10 * time.Microsecond, 1, 0},
		"less than that":                 {16384, 8191, 10 * time.Microsecond, 0, 0},
		"C23: a queue of 16":             {16, 16, time.Millisecond, 1, 1},
		"C23: a queue of 16, in a while": {16, 16, 3 * time.Second, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := burst{queue: test.queue}
			now := time.Now()
			many, flood := 0, 0
			for range test.events {
				now = now.Add(test.each)
				switch b.add(now) {
				case burstMany:
					many++
				case burstFlood:
					flood++
				}
			}
			if many != test.many || flood != test.flood {
				t.Errorf("%d times many and %d times a flood, want %d and %d", many, flood, test.many, test.flood)
			}
		})
	}
}

func TestQueueLimitIsTheKernels(t *testing.T) {
	if limit := queueLimit(); limit < 1 {
		t.Fatalf("the queue holds %d events", limit)
	}
}
