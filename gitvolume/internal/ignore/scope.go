package ignore

// scope is what is left of one file's patterns in a directory at or below its own.
type scope struct {
	list *list
	// base is the level that the file belongs to, nil for the class's list.
	base *Level
	// active are the candidates in this directory, in the file's order; here are
	// those of them that can match one of its entries.
	active, here []candidate
}

// candidate is a place that matches down to a directory, of which an entry has to
// match the next step.
type candidate struct {
	*place
	next int
}

func (c candidate) step() *step  { return &c.steps[c.next] }
func (c candidate) atLast() bool { return c.next == len(c.steps)-1 }

// leads tells whether the subdirectory name matches the next step of several.
func (c candidate) leads(name string) bool { return !c.atLast() && c.step().matches(name) }

// How many bytes of memory a scope and a candidate take.
const (
	scopeBytes     = 64
	candidateBytes = 16
)

func newScope(l *list, base *Level) scope {
	s := scope{list: l, base: base}
	for _, r := range l.anchored {
		for i := range r.places {
			s.add(candidate{place: &r.places[i]})
		}
	}
	return s
}

// enter is the scope of the subdirectory name. Most often nothing changes but at the
// first levels, and then nothing is copied.
func (s *scope) enter(name string) scope {
	same := 0
	for same < len(s.active) && s.active[same].step().loops && !s.active[same].leads(name) {
		same++
	}
	if same == len(s.active) {
		return *s
	}
	sub := scope{list: s.list, base: s.base}
	for _, c := range s.active[:same] {
		sub.add(c)
	}
	for _, c := range s.active[same:] {
		if c.step().loops {
			sub.add(c)
		}
		if c.leads(name) {
			sub.add(candidate{c.place, c.next + 1})
		}
	}
	return sub
}

// shares tells whether the candidates are those of the scope above, and not copied.
func (s *scope) shares(above *scope) bool {
	return len(s.active) == len(above.active) && (len(s.active) == 0 || &s.active[0] == &above.active[0])
}

func (s *scope) size() int {
	return (cap(s.active) + cap(s.here)) * candidateBytes
}

// add takes a candidate. One that came twice, because a step loops and the one before
// it matched, comes twice in a row; to keep both would double them at each level.
func (s *scope) add(c candidate) {
	if n := len(s.active); n > 0 && s.active[n-1] == c {
		return
	}
	s.active = append(s.active, c)
	if c.atLast() {
		s.here = append(s.here, c)
	}
}

// find is the last of the file's rules that matches the entry, nil if there is none.
func (s *scope) find(name string, isDir bool) *rule {
	best := s.list.find(name, isDir)
	for i := len(s.here) - 1; i >= 0; i-- {
		c := s.here[i]
		if c.rule.before(best) {
			break
		}
		if c.rule.takes(isDir) && c.step().matches(name) {
			return c.rule
		}
	}
	return best
}
