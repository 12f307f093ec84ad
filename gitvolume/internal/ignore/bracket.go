package ignore

import "strings"

// bracket reads a set of bytes from its "[" to its "]", where it leaves the compiler.
// It returns false for a set without an end or with an unknown class.
func (c *compiler) bracket() (set, bool) {
	var s set
	p := c.pattern
	i := c.at + 1
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	// last is the byte that a range can start with, if there is one; git has no
	// other mark for none than zero.
	last := byte(0)
	// A "]" that comes first is a member.
	for first := true; first || i < len(p) && p[i] != ']'; first = false {
		if i >= len(p) {
			return s, false
		}
		switch b := p[i]; {
		case b == '-' && last != 0 && i+1 < len(p) && p[i+1] != ']':
			i++
			high, ok := quoted(p, &i)
			if !ok {
				return s, false
			}
			s.addRange(last, high)
			last = 0
		case b == '[' && strings.HasPrefix(p[i+1:], ":"):
			// A class ends at the next "]"; without ":" before that, the
			// bracket and the colon are members like others.
			length := strings.IndexByte(p[i+2:], ']')
			if length < 0 {
				return s, false
			}
			name, isClass := strings.CutSuffix(p[i+2:i+2+length], ":")
			switch {
			case !isClass:
				s.add('[')
				last = '['
			case !s.addClass(name):
				return s, false
			default:
				i += 2 + length
				last = 0
			}
		default:
			member, ok := quoted(p, &i)
			if !ok {
				return s, false
			}
			s.add(member)
			last = member
		}
		i++
	}
	if i >= len(p) {
		return s, false
	}
	c.at = i
	if negated {
		for j := range s {
			s[j] = ^s[j]
		}
	}
	s.remove('/')
	return s, true
}

// quoted reads the byte at *i, or the one behind it if that is a backslash.
func quoted(p string, i *int) (byte, bool) {
	if p[*i] == '\\' {
		*i++
		if *i == len(p) {
			return 0, false
		}
	}
	return p[*i], true
}

// addClass adds what the class has in git, for which only ASCII has classes. It
// returns false if there is no class of that name.
func (s *set) addClass(name string) bool {
	switch name {
	case "alnum":
		s.addRange('0', '9')
		s.addRange('A', 'Z')
		s.addRange('a', 'z')
	case "alpha":
		s.addRange('A', 'Z')
		s.addRange('a', 'z')
	case "blank":
		s.add(' ')
		s.add('\t')
	case "cntrl":
		s.addRange(0, 0x1f)
		s.add(0x7f)
	case "digit":
		s.addRange('0', '9')
	case "graph":
		s.addRange('!', '~')
	case "lower":
		s.addRange('a', 'z')
	case "print":
		s.addRange(' ', '~')
	case "punct":
		s.addRange('!', '/')
		s.addRange(':', '@')
		s.addRange('[', '`')
		s.addRange('{', '~')
	case "space":
		for _, b := range []byte(" \t\n\r") {
			s.add(b)
		}
	case "upper":
		s.addRange('A', 'Z')
	case "xdigit":
		s.addRange('0', '9')
		s.addRange('A', 'F')
		s.addRange('a', 'f')
	default:
		return false
	}
	return true
}
