package ignore

import "slices"

// place is where below its file's directory a rule matches: one step for each
// component of the path.
type place []step

// step matches one component.
type step struct {
	segment
	// loops means that any number of components may come before, as of "**/".
	loops bool
}

// newPlaces splits a pattern's tokens at the slashes. There are two places, of which
// either may match, if a token for directories stands inside a component.
func newPlaces(tokens []token, sets []set) []place {
	for i, t := range tokens {
		if t.op == opDirectories && i > 0 && !tokens[i-1].isSlash() {
			// It matches nothing, or up to a slash in a component further down.
			none := slices.Concat(tokens[:i], tokens[i+1:])
			down := slices.Concat(tokens[:i], []token{{op: opStar}, {byte: '/'}}, tokens[i:])
			return []place{newPlace(none, sets), newPlace(down, sets)}
		}
	}
	return []place{newPlace(tokens, sets)}
}

func newPlace(tokens []token, sets []set) place {
	var p place
	start, loops := 0, false
	for i, t := range tokens {
		switch {
		case t.isSlash():
			p = append(p, step{newSegment(tokens[start:i], sets), loops})
			start, loops = i+1, false
		case t.op == opDirectories:
			start, loops = i+1, true
		}
	}
	return append(p, step{newSegment(tokens[start:], sets), loops})
}
