package writeable

import "time"

const (
	// unarmedQuiet is how long a tree that is not committed has to be quiet to be looked at,
	// and unarmedLatency how long one that is not quiet goes without.
	unarmedQuiet   = 2 * time.Second
	unarmedLatency = 30 * time.Second
	// leastScan is the time between two scans of a tree whose watch is degraded, unless the
	// quiesce is longer.
	leastScan = 10 * time.Second
	// firstRetry and lastRetry bound the delay of a push that failed.
	firstRetry = 10 * time.Second
	lastRetry  = 5 * time.Minute
	// mostAsked is how long a remote is left alone at most because it asks for that.
	mostAsked = time.Hour
	// recordRetry is when a metadata record that was refused is offered again.
	recordRetry = time.Hour
)

// clock is when things are due. It knows nothing but times.
type clock struct {
	// lastWrite and firstWrite are the last and the oldest write that was not looked at.
	lastWrite, firstWrite time.Time
	// oldestUnpushed is when the oldest commit was made that the remote lacks, and quiet
	// whether the tree was when the last one was.
	oldestUnpushed time.Time
	quiet          bool
	// retryAt is when a push that failed is tried again, failures how often it did.
	retryAt  time.Time
	failures int
	// recordAt is when a refused record is offered again.
	recordAt time.Time
	// askAt is when a remote is asked again that could not be at the start, asks how often it
	// was.
	askAt time.Time
	asks  int
	// restUntil is when the tree is worked on again after that failed on this machine, and
	// stuck how often it did.
	restUntil time.Time
	stuck     int
	// barred tells that nothing at all can be done until then: there is no repository.
	barred bool
	// scanned is when everything was last looked at, and cost how long that took.
	scanned time.Time
	cost    time.Duration
}

// wrote notes that the tree was written.
func (c *clock) wrote(now time.Time) {
	c.lastWrite = now
	if c.firstWrite.IsZero() {
		c.firstWrite = now
	}
}

// looked notes that all that was written was looked at.
func (c *clock) looked() { c.lastWrite, c.firstWrite = time.Time{}, time.Time{} }

// lookDue is when what was written is due to be looked at; zero: nothing was. latency 0
// waits until the tree is quiet.
func (c *clock) lookDue(quiesce, latency time.Duration) time.Time {
	if c.lastWrite.IsZero() {
		return time.Time{}
	}
	due := c.lastWrite.Add(quiesce)
	if latency > 0 {
		due = earlier(due, c.firstWrite.Add(latency))
	}
	return due
}

// committed notes a commit.
func (c *clock) committed(now time.Time, quiet bool) {
	if c.oldestUnpushed.IsZero() {
		c.oldestUnpushed = now
	}
	c.quiet = quiet
}

// pushDue is when what was committed is due to be pushed; zero: there is nothing.
func (c *clock) pushDue(latency time.Duration) time.Time {
	switch {
	case c.oldestUnpushed.IsZero():
		return time.Time{}
	case !c.retryAt.IsZero():
		return c.retryAt
	case c.quiet || latency == 0:
		return c.oldestUnpushed
	}
	return c.oldestUnpushed.Add(latency)
}

// pushed notes that the remote has all there is.
func (c *clock) pushed() {
	c.oldestUnpushed, c.retryAt, c.failures = time.Time{}, time.Time{}, 0
}

// failed notes that a push failed; the remote may have asked to be left alone for a time.
// jitter is from 0 to 1.
func (c *clock) failed(now time.Time, asked time.Duration, jitter float64) {
	delay := max(backoff(c.failures, jitter), min(asked, mostAsked))
	c.failures++
	c.retryAt = now.Add(delay)
	if c.oldestUnpushed.IsZero() {
		c.oldestUnpushed = now
	}
}

// unasked notes that the remote could not be asked what it has.
func (c *clock) unasked(now time.Time, jitter float64) {
	c.askAt = now.Add(backoff(c.asks, jitter))
	c.asks++
}

// rest leaves the tree alone for a while: what failed would fail again.
func (c *clock) rest(now time.Time, jitter float64) {
	c.restUntil = now.Add(backoff(c.stuck, jitter))
	c.stuck++
	c.wrote(now)
}

// works notes that the tree can be worked on.
func (c *clock) works() { c.restUntil, c.stuck = time.Time{}, 0 }

// backoff is the delay after so many failures before: twice as long each time, and up to a
// quarter more, so that many volumes do not come back together.
func backoff(failures int, jitter float64) time.Duration {
	delay := lastRetry
	if failures < 5 {
		delay = min(firstRetry<<failures, lastRetry)
	}
	return delay + time.Duration(float64(delay/4)*jitter)
}

// hurry has done at once what waits for the remote.
func (c *clock) hurry(now time.Time) {
	if !c.oldestUnpushed.IsZero() {
		c.retryAt = now
	}
	if !c.askAt.IsZero() {
		c.askAt = now
	}
}

// scanDue is when everything is to be looked at again.
func (c *clock) scanDue(every, quiesce time.Duration, degraded bool) time.Time {
	if degraded {
		every = min(every, max(quiesce, leastScan))
	}
	// However large the tree, looking at it takes at most a twentieth of the time.
	return c.scanned.Add(max(every, 20*c.cost))
}

// earlier is the earlier of two times, of which a zero one is never.
func earlier(a, b time.Time) time.Time {
	switch {
	case a.IsZero():
		return b
	case b.IsZero() || a.Before(b):
		return a
	}
	return b
}

// isDue tells whether a time has come, which a zero one never has.
func isDue(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }
