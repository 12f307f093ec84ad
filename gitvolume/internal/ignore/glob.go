package ignore

// glob is a compiled pattern with wildcards.
type glob struct {
	tokens []token
	sets   []set
}

// match tells whether the pattern matches all of dir followed by name, which come
// apart so that no one has to join them for each name.
//
// Only the last star and, behind it, the last token that crosses directories are
// ever tried again: whatever an earlier one could take more of, the later one can
// take as well. So no pattern costs more than the square of the path's length, where
// trying every combination, as git 2.39 does, takes exponential time.
func (g *glob) match(dir, name string) bool {
	length := len(dir) + len(name)
	at := func(i int) byte {
		if i < len(dir) {
			return dir[i]
		}
		return name[i-len(dir)]
	}
	i, k := 0, 0
	star, cross := retry{token: -1}, retry{token: -1}
	for {
		if k == len(g.tokens) {
			if i == length {
				return true
			}
		} else {
			token := g.tokens[k]
			switch token.op {
			case opStar:
				star = retry{k, i}
				k++
				continue
			case opEverything, opDirectories:
				if k == len(g.tokens)-1 && token.op == opEverything {
					return true
				}
				cross, star = retry{k, i}, retry{token: -1}
				k++
				continue
			}
			if i == length {
				// A token wants a byte and there is none, so it is with
				// whatever else leaves even less.
				return false
			}
			if g.one(token, at(i)) {
				i++
				k++
				continue
			}
		}
		switch {
		case star.token >= 0 && star.from < length && at(star.from) != '/':
			star.from++
			i, k = star.from, star.token+1
		case cross.token < 0:
			return false
		default:
			if g.tokens[cross.token].op == opDirectories {
				for cross.from < length && at(cross.from) != '/' {
					cross.from++
				}
			}
			if cross.from >= length {
				return false
			}
			cross.from++
			star.token = -1
			i, k = cross.from, cross.token+1
		}
	}
}

// retry is where a match goes on when it failed: behind a token that can take more,
// with what follows matched from a later byte.
type retry struct{ token, from int }

// one matches a token that takes exactly one byte.
func (g *glob) one(t token, b byte) bool {
	switch t.op {
	case opByte:
		return t.byte == b
	case opAny:
		return b != '/'
	}
	return g.sets[t.set].has(b)
}
