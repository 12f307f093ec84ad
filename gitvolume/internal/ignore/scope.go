package ignore

// scope is what is left of one file's patterns in a directory at or below its own.
type scope struct {
	list *list
	// base is the level that the file belongs to, nil for the class's list.
	base *Level
	// depth is how many directories below the file's own this one is.
	depth int
	// dir is the path from the file's directory to this one, with a slash at its
	// end; empty if no rule needs it.
	dir string
	// here are the anchored rules that can match an entry of this directory, below
	// those that can match further down; both in the file's order.
	here, below []candidate
}

// candidate is an anchored rule whose parents have matched so far.
type candidate struct {
	*rule
	// from is where in dir the rest of the rule starts to match.
	from int
}

func newScope(l *list, base *Level) scope {
	s := scope{list: l, base: base}
	for _, r := range l.anchored {
		s.keep(candidate{rule: r})
	}
	return s
}

// enter is the scope of the subdirectory name.
func (s *scope) enter(name string) scope {
	sub := scope{list: s.list, base: s.base, depth: s.depth + 1}
	if s.list.deep {
		sub.dir = s.dir + name + "/"
	}
	for _, c := range s.below {
		if s.depth < len(c.place.parents) {
			if !c.place.parents[s.depth].matches(name) {
				continue
			}
			c.from = len(sub.dir)
		}
		sub.keep(c)
	}
	return sub
}

// keep files a candidate, of which all parents down to this directory match.
func (s *scope) keep(c candidate) {
	remaining := len(c.place.parents) - s.depth
	if remaining <= 0 {
		s.here = append(s.here, c)
	}
	if remaining > 0 || c.place.rest != nil {
		s.below = append(s.below, c)
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
		if c.takes(isDir) && c.matches(s.dir, name) {
			return c.rule
		}
	}
	return best
}

func (c *candidate) matches(dir, name string) bool {
	if c.place.rest != nil {
		return c.place.rest.match(dir[c.from:], name)
	}
	return c.last.matches(name)
}
