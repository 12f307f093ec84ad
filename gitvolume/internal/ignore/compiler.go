package ignore

import "strings"

// token is one step of a compiled pattern.
type token struct {
	op op
	// byte is what opByte matches.
	byte byte
	// set is the place of what opSet matches in the pattern's sets.
	set uint32
}

type op uint8

const (
	opByte        op = iota // this byte
	opAny                   // any byte but a slash
	opSet                   // a byte of a set
	opStar                  // any number of bytes without a slash
	opDirectories           // nothing, or any number of bytes up to a slash and the slash
)

func (t token) isSlash() bool { return t.op == opByte && t.byte == '/' }

// set holds one bit for each byte.
type set [4]uint64

func (s *set) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }
func (s *set) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *set) remove(b byte)   { s[b>>6] &^= 1 << (b & 63) }

// addRange adds the bytes from low to high; there are none if high is less.
func (s *set) addRange(low, high byte) {
	for b := int(low); b <= int(high); b++ {
		s.add(byte(b))
	}
}

// never is a compiler's starts for a pattern in which no "**" crosses directories.
const never = -1

// compiler turns a pattern into tokens, as git's matcher reads it.
type compiler struct {
	pattern string
	// starts is where, apart from behind a slash, a "**" may start and cross
	// directories; never for a pattern that is matched against one component.
	starts int
	at     int
	tokens []token
	sets   []set
}

// compile reads the whole pattern. It returns false for one that can match nothing:
// with an unclosed bracket, an unknown class or a backslash at its end.
func (c *compiler) compile() bool {
	c.tokens = make([]token, 0, len(c.pattern))
	for c.at < len(c.pattern) {
		b := c.pattern[c.at]
		switch b {
		case '*':
			c.stars()
			continue
		case '?':
			c.tokens = append(c.tokens, token{op: opAny})
		case '[':
			s, ok := c.bracket()
			if !ok {
				return false
			}
			c.tokens = append(c.tokens, token{op: opSet, set: uint32(len(c.sets))})
			c.sets = append(c.sets, s)
		case '\\':
			c.at++
			if c.at == len(c.pattern) {
				return false
			}
			c.tokens = append(c.tokens, token{byte: c.pattern[c.at]})
		default:
			c.tokens = append(c.tokens, token{byte: b})
		}
		c.at++
	}
	return true
}

// stars reads a run of asterisks, of which two or more between slashes cross
// directories and all others do not.
func (c *compiler) stars() {
	first := c.at
	for c.at < len(c.pattern) && c.pattern[c.at] == '*' {
		c.at++
	}
	rest := c.pattern[c.at:]
	opens := c.starts != never && (first == c.starts || first > 0 && c.pattern[first-1] == '/')
	switch {
	case c.at-first < 2 || !opens:
		c.tokens = append(c.tokens, token{op: opStar})
	case rest == "":
		// All that is below, at any depth.
		c.directories()
		c.tokens = append(c.tokens, token{op: opStar})
	case rest[0] == '/':
		c.at++
		c.directories()
	case strings.HasPrefix(rest, `\/`):
		// git sees the slash too late to try a match without it, so there is at
		// least one directory.
		c.at += len(`\/`)
		c.tokens = append(c.tokens, token{op: opStar}, token{byte: '/'})
		c.directories()
	default:
		c.tokens = append(c.tokens, token{op: opStar})
	}
}

// directories adds a token for directories; a second one in a row would say nothing.
func (c *compiler) directories() {
	if n := len(c.tokens); n == 0 || c.tokens[n-1].op != opDirectories {
		c.tokens = append(c.tokens, token{op: opDirectories})
	}
}
