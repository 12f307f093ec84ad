package watch

import (
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultQueue is the kernel's own default for fs.inotify.max_queued_events.
	defaultQueue = 16384
	// slow is how long a starved process may take over a full queue.
	slow = 10 * time.Second
	// swift is how long a process that runs takes over a full queue.
	swift = time.Second
)

// verdict is what a number of events says about those that did not come.
type verdict int

const (
	burstNone  verdict = iota
	burstMany          // The queue may have been full: look, to be sure.
	burstFlood         // A whole queue came at once: it most likely was full.
)

// burst tells by the events that came whether the kernel's queue may have overflowed.
// notify hides the kernel's own word for it, but a queue that overflowed was full,
// and a full queue comes as that many events in a row, whichever trees they are of.
type burst struct {
	queue int // How many events the kernel's queue holds.

	many, flood           int
	manySince, floodSince time.Time
}

// add counts an event. A third of those in a queue may be of kinds that notify
// keeps for itself, so half a queue counts as one that may have been full.
func (b *burst) add(now time.Time) verdict {
	if now.Sub(b.manySince) > slow {
		b.many, b.manySince = 0, now
	}
	if now.Sub(b.floodSince) > swift {
		b.flood, b.floodSince = 0, now
	}
	b.many++
	b.flood++
	switch {
	case b.flood >= b.queue:
		b.flood, b.many = 0, 0
		return burstFlood
	case b.many >= b.queue/2:
		b.many = 0
		return burstMany
	}
	return burstNone
}

// queueLimit is what the kernel gives a new inotify instance.
func queueLimit() int {
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		return defaultQueue
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || limit < 1 {
		return defaultQueue
	}
	return limit
}
