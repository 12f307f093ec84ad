package inspect

import (
	"sync"
	"time"
)

// question is something asked of a disk that may never answer: in a goroutine of
// its own, and never two at a time.
type question struct {
	mu    sync.Mutex
	since time.Time     // When the one that waits for its answer was asked; zero for none.
	again bool          // It was asked once more meanwhile.
	done  chan struct{} // Closed when nothing is asked any more.
}

// ask has work done, after what is going on: that may have seen what was before
// the caller's change. The channel is closed when it is done.
func (q *question) ask(work func()) (done <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.since.IsZero() {
		q.again = true
		return q.done
	}
	q.since, q.done = time.Now(), make(chan struct{})
	go q.answer(work)
	return q.done
}

func (q *question) answer(work func()) {
	for {
		work()
		q.mu.Lock()
		if !q.again {
			q.since = time.Time{}
			close(q.done)
			q.mu.Unlock()
			return
		}
		q.since, q.again = time.Now(), false
		q.mu.Unlock()
	}
}

func (q *question) isAskedAgain() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.again
}

// silent is for how long the disk has not answered.
func (q *question) silent() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.since.IsZero() {
		return 0
	}
	return time.Since(q.since)
}
