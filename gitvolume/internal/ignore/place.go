package ignore

import "slices"

// place is where below its file's directory a rule matches: one step for each
// component of the path.
type place struct {
	rule  *rule
	steps []step
}

// step matches one component.
type step struct {
	segment
	// loops means that any number of components may come before, as of "**/".
	loops bool
}

// newPlaces splits the tokens of a rule's pattern at the slashes. There are two places, of which
// either may match, if a token for directories stands inside a component.
func newPlaces(r *rule, tokens []token, sets []set) []place {
	for i, t := range tokens {
		if t.op == opDirectories && i > 0 && !tokens[i-1].isSlash() {
			// It matches nothing, or up to a slash in a component further down.
			none := slices.Concat(tokens[:i], tokens[i+1:])
			down := slices.Concat(tokens[:i], []token{{op: opStar}, {byte: '/'}}, tokens[i:])
			return []place{{r, newSteps(none, sets)}, {r, newSteps(down, sets)}}
		}
	}
	return []place{{r, newSteps(tokens, sets)}}
}

func newSteps(tokens []token, sets []set) []step {
	var steps []step
	start, loops := 0, false
	for i, t := range tokens {
		switch {
		case t.isSlash():
			steps = append(steps, step{newSegment(tokens[start:i], sets), loops})
			start, loops = i+1, false
		case t.op == opDirectories:
			start, loops = i+1, true
		}
	}
	return append(steps, step{newSegment(tokens[start:], sets), loops})
}
