package remote

import (
	"maps"
	"slices"
	"strings"
)

// scope is what fetches have to have in common to share what they bring. Who trusts other
// hosts, or may not reach every address, must not be given what another's fetch brought from
// one of them.
type scope struct {
	dir      string
	url      string
	depth    int
	identity [32]byte
	nobody   bool
	permits  bool
	limits   string
}

func scopeOf(d Demand) scope {
	s := scope{
		dir: d.Request.Dir, url: d.Request.Remote.URL.String(), depth: d.Request.Depth,
		nobody: d.Credential == nil, permits: d.Request.Remote.Permit != nil, limits: d.Request.Remote.Limits,
	}
	if d.Credential != nil {
		s.identity = d.Credential.Identity()
	}
	return s
}

// fetch is one that runs or waits for its turn. All but demand, scope and done is Fetches.mu's.
type fetch struct {
	demand   Demand
	scope    scope
	running  bool
	urgent   bool // Somebody waits for it, or did.
	wanted   int  // How many do whose turn, if they have one, is not over.
	done     chan struct{}
	result   map[string]Fetched
	err      error
	progress Progress
}

// queue is what runs of a repository, and what waits in the order in which it came. It is
// Fetches.mu's.
type queue struct {
	running, waiting []*fetch
	served           bool
	// hasSlot says that what runs has a slot. callOff ends it, and isOver says that it was.
	hasSlot, isOver bool
	callOff         func()
	// urgent is closed when somebody waits for one of them.
	urgent chan struct{}
}

// find is a fetch that meets the other's demand too; nil: none does.
func (q *queue) find(other *fetch, anew bool) *fetch {
	among := q.waiting
	if !anew && !q.isOver {
		among = slices.Concat(q.running, q.waiting)
	}
	for _, one := range among {
		if one.scope == other.scope && one.demand.covers(other.demand) {
			return one
		}
	}
	return nil
}

// endUnwanted calls off what runs without a slot if nobody waits for it.
func (q *queue) endUnwanted() {
	if !q.hasSlot && !slices.ContainsFunc(q.running, func(one *fetch) bool { return one.wanted > 0 }) {
		q.callOff()
	}
}

// covers tells whether the other demand, of the same scope, is met when this one is.
func (d Demand) covers(other Demand) bool {
	for from, to := range other.Request.Refs {
		if d.Request.Refs[from] != to {
			return false
		}
	}
	return true
}

// of is what the demand asked for, of what was brought for several.
func (d Demand) of(brought map[string]Fetched) map[string]Fetched {
	if brought == nil {
		return nil
	}
	own := map[string]Fetched{}
	for from := range d.Request.Refs {
		if one, found := brought[from]; found {
			own[from] = one
		}
	}
	return own
}

// hurry has the fetch wait for no slot, and for no other one that nobody waits for.
func (q *queue) hurry(one *fetch) {
	one.urgent = true
	select {
	case <-q.urgent:
	default:
		close(q.urgent)
	}
}

// rest has what nobody waits for wait for a slot again. Nothing runs.
func (q *queue) rest() {
	if !slices.ContainsFunc(q.waiting, func(one *fetch) bool { return one.urgent }) {
		q.urgent = make(chan struct{})
	}
}

// begin takes what is next out of the line: the first that somebody waits for, or else the
// first, with all that may be fetched together with it.
func (q *queue) begin() []*fetch {
	next := max(0, slices.IndexFunc(q.waiting, func(one *fetch) bool { return one.urgent }))
	batch := []*fetch{q.waiting[next]}
	for i, one := range q.waiting {
		if i != next && one.joins(batch) {
			batch = append(batch, one)
		}
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(one *fetch) bool { return slices.Contains(batch, one) })
	for _, one := range batch {
		one.running = true
	}
	q.running, q.isOver = slices.Clone(batch), false
	return batch
}

// mostTogether bounds the refs of a fetch of several.
const mostTogether = 1000

// joins tells whether the fetch can be made together with the others. A commit is fetched by
// itself: that it is missing fails the whole.
func (j *fetch) joins(batch []*fetch) bool {
	if j.scope != batch[0].scope {
		return false
	}
	all := refsOf(batch)
	if len(all)+len(j.demand.Request.Refs) > mostTogether {
		return false
	}
	places := map[string]bool{}
	for _, refs := range []map[string]string{all, j.demand.Request.Refs} {
		for from := range refs {
			if !strings.HasPrefix(from, "refs/") {
				return false
			}
		}
	}
	for _, to := range all {
		places[to] = true
	}
	for from, to := range j.demand.Request.Refs {
		if there, found := all[from]; found && there != to || !found && places[to] {
			return false
		}
	}
	return true
}

func refsOf(batch []*fetch) map[string]string {
	all := map[string]string{}
	for _, one := range batch {
		maps.Copy(all, one.demand.Request.Refs)
	}
	return all
}
