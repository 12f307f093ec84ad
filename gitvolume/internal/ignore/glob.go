package ignore

// glob is a compiled pattern with wildcards, for one component of a path.
type glob struct {
	tokens []token
	sets   []set
}

// match tells whether the pattern matches all of name.
//
// Only the last star is ever tried again: whatever an earlier one could take more of,
// the last one can take as well. So no pattern costs more than the square of the
// name's length, where trying every combination, as git 2.39 does, takes exponential
// time.
func (g *glob) match(name string) bool {
	i, k := 0, 0
	// star is the place of the last star, of which what follows is matched from
	// the byte at from.
	star, from := -1, 0
	for {
		switch {
		case k == len(g.tokens):
			if i == len(name) {
				return true
			}
		case g.tokens[k].op == opStar:
			star, from = k, i
			k++
			continue
		case i == len(name):
			// A token wants a byte and there is none; a star that takes more
			// would leave even less.
			return false
		case g.one(g.tokens[k], name[i]):
			i++
			k++
			continue
		}
		if star < 0 || from == len(name) {
			return false
		}
		from++
		i, k = from, star+1
	}
}

// one matches a token that takes exactly one byte.
func (g *glob) one(t token, b byte) bool {
	switch t.op {
	case opByte:
		return t.byte == b
	case opSet:
		return g.sets[t.set].has(b)
	}
	return true
}
