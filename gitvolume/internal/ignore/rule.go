package ignore

import "strings"

// rule is one pattern of a file. It is matched against the last component of any
// path below its file's directory, or component by component from there if it has
// places.
type rule struct {
	// text is the pattern as written, without the blanks at its end.
	text string
	// line is where it stands in its file, from 1; it tells which rule is later.
	line int
	// negated means that what matches is not ignored.
	negated bool
	// directory means that only a directory matches.
	directory bool
	name      segment
	places    []place
}

// before tells whether r stands before other, which may be nil.
func (r *rule) before(other *rule) bool { return other != nil && r.line < other.line }

// takes tells whether the rule is for this kind of file at all.
func (r *rule) takes(isDir bool) bool { return isDir || !r.directory }

// parseRule reads one line, without its newline. Lines that hold no pattern, and
// patterns that can match nothing, give no rule.
func parseRule(line string, number int) (rule, bool) {
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	line = strings.TrimSuffix(line, "\r")
	// git handles lines as C strings.
	if end := strings.IndexByte(line, 0); end >= 0 {
		line = line[:end]
	}
	line = trimBlanks(line)
	r := rule{text: line, line: number}
	pattern, negated := strings.CutPrefix(line, "!")
	pattern, directory := strings.CutSuffix(pattern, "/")
	r.negated, r.directory = negated, directory
	if pattern == "" {
		return rule{}, false
	}
	ok := false
	if strings.Contains(pattern, "/") {
		ok = r.parsePlaces(strings.TrimPrefix(pattern, "/"))
	} else {
		r.name, ok = parseName(pattern)
	}
	return r, ok
}

// trimBlanks cuts the blanks at the end that no backslash quotes. Only the space is
// one: git keeps tabs.
func trimBlanks(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
			if i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

// parseName reads a pattern without a slash. There "**" is no more than "*".
func parseName(pattern string) (segment, bool) {
	c := compiler{pattern: pattern, starts: never}
	if !c.compile() {
		return segment{}, false
	}
	return newSegment(c.tokens, c.sets), true
}

// parsePlaces reads a pattern with a slash, without one at its start.
func (r *rule) parsePlaces(pattern string) bool {
	// git compares what stands before the first special byte on its own and gives
	// the remainder to its matcher, for which a "**" at the start of the remainder
	// stands at the start of a path: "a/b**/c" matches "a/bc" and "a/bx/y/c".
	c := compiler{pattern: pattern, starts: plainLength(pattern)}
	if pattern == "" || !c.compile() {
		return false
	}
	r.places = newPlaces(c.tokens, c.sets)
	if only := r.places[0]; len(r.places) == 1 && len(only) == 1 && only[0].loops {
		// "**/name" is "name", and is found faster so.
		r.name, r.places = only[0].segment, nil
	}
	return true
}

// plainLength is how many bytes stand before the first that is special.
func plainLength(pattern string) int {
	if i := strings.IndexAny(pattern, `*?[\`); i >= 0 {
		return i
	}
	return len(pattern)
}
