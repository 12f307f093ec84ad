package remote

import (
	"maps"
	"time"
)

// leastAsking is what those who only ask have of the slots' time, at least, between two runs
// that push.
const leastAsking = time.Second

// turnLength is what one turn is for. Where a run took longer, the others of its host wait for
// as many more turns.
const turnLength = 5 * time.Second

// line is in which order runs that wait have their turns: those to one host do not all come
// before those to another, however many they are; and those that push come before those that
// only ask, but do not keep them out.
type line struct {
	// grants counts the slots that were granted, and places has the last place of each host
	// that has one later than that.
	grants int
	places map[string]int
	// asked is how much more of the slots' time asking had of late than pushing.
	asked time.Duration
}

func newLine() line { return line{places: map[string]int{}} }

// join is the place of one that comes now: behind those of its own host as if each of them
// had come one turn later. Nobody who comes later is before it for good: places grow with
// what is granted, and not with who comes.
func (l *line) join(host string) int {
	place := l.grants
	if last, found := l.places[host]; found {
		place = max(place, last+1)
	}
	l.places[host] = place
	return place
}

// granted notes that one had its turn.
func (l *line) granted() {
	l.grants++
	maps.DeleteFunc(l.places, func(_ string, last int) bool { return last < l.grants })
}

// took notes for how long a run had its slot, and puts others back that wait for its host.
func (l *line) took(w *waiter, length time.Duration, waiting []*waiter) {
	more := int(min(length, LookTimeout) / turnLength)
	l.places[w.host] = max(l.places[w.host], l.grants-1) + more
	for _, other := range waiting {
		if other.host == w.host {
			other.place += more
		}
	}
	if w.errand == Pushing {
		length = -length
	}
	l.asked = min(max(l.asked+length, -leastAsking), LookTimeout)
}

// first is what goes before the other.
func (l *line) first() Errand {
	if l.asked < 0 {
		return Asking
	}
	return Pushing
}

// isBefore tells whether one's turn is before that of another who came earlier.
func (l *line) isBefore(w, earlier *waiter) bool {
	if w.errand != earlier.errand {
		return w.errand == l.first()
	}
	return w.place < earlier.place
}
