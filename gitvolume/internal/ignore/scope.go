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

// candidate is a place of a rule that matches down to a directory, of which an entry
// has to match the next step.
type candidate struct {
	*rule
	place place
	next  int
}

func (c *candidate) step() *step          { return &c.place[c.next] }
func (c *candidate) atLast() bool         { return c.next == len(c.place)-1 }
func (c *candidate) is(o *candidate) bool { return c.next == o.next && &c.place[0] == &o.place[0] }

func newScope(l *list, base *Level) scope {
	s := scope{list: l, base: base}
	for _, r := range l.anchored {
		for _, p := range r.places {
			s.add(candidate{rule: r, place: p})
		}
	}
	return s
}

// enter is the scope of the subdirectory name.
func (s *scope) enter(name string) scope {
	sub := scope{list: s.list, base: s.base}
	for _, c := range s.active {
		if c.step().loops {
			sub.add(c)
		}
		if !c.atLast() && c.step().matches(name) {
			c.next++
			sub.add(c)
		}
	}
	return sub
}

// add takes a candidate. One that came twice, because a step loops and the one before
// it matched, comes twice in a row; to keep both would double them at each level.
func (s *scope) add(c candidate) {
	if n := len(s.active); n > 0 && s.active[n-1].is(&c) {
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
		c := &s.here[i]
		if c.before(best) {
			break
		}
		if c.takes(isDir) && c.step().matches(name) {
			return c.rule
		}
	}
	return best
}
