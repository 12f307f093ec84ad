package ignore

import "strings"

// segment matches one component of a path. Nearly all patterns that people write are
// one of the cheap kinds.
type segment struct {
	kind segmentKind
	// text is what the cheap kinds compare with.
	text string
	glob *glob
}

type segmentKind uint8

const (
	plain  segmentKind = iota // text itself
	prefix                    // text, then anything
	suffix                    // anything, then text
	wild                      // what glob says
)

func newSegment(tokens []token, sets []set) segment {
	switch {
	case allBytes(tokens):
		return segment{kind: plain, text: text(tokens)}
	case tokens[0].op == opStar && allBytes(tokens[1:]):
		return segment{kind: suffix, text: text(tokens[1:])}
	case tokens[len(tokens)-1].op == opStar && allBytes(tokens[:len(tokens)-1]):
		return segment{kind: prefix, text: text(tokens[:len(tokens)-1])}
	}
	return segment{kind: wild, glob: &glob{tokens, sets}}
}

func (s *segment) matches(name string) bool {
	switch s.kind {
	case plain:
		return name == s.text
	case prefix:
		return strings.HasPrefix(name, s.text)
	case suffix:
		return strings.HasSuffix(name, s.text)
	}
	return s.glob.match(name)
}

func allBytes(tokens []token) bool {
	for _, token := range tokens {
		if token.op != opByte {
			return false
		}
	}
	return true
}

func text(tokens []token) string {
	bytes := make([]byte, len(tokens))
	for i, token := range tokens {
		bytes[i] = token.byte
	}
	return string(bytes)
}
