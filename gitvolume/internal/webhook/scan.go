package webhook

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	// longestKept is the longest string that is kept of a payload, in bytes; a ref and a URL
	// are far shorter.
	longestKept = 8 << 10
	// deepest is how deep a payload may be nested. Forges need four.
	deepest = 100
)

// wanted is what of a JSON value is kept: a string, or of an object members by their names.
// Nil keeps nothing.
type wanted struct {
	text    *string
	members map[string]*wanted
}

func (w *wanted) member(name string) *wanted {
	if w == nil {
		return nil
	}
	return w.members[name]
}

func (w *wanted) hasMembers() bool { return w != nil && len(w.members) > 0 }

// scanner reads JSON as it comes, and has no more of it in memory than what is wanted, which
// encoding/json cannot: it has each string whole.
type scanner struct {
	in  *bufio.Reader
	raw []byte // of the string or word that is read
}

// scanObject reads an object to the end of in, of which nothing else may come.
func scanObject(in io.Reader, want *wanted) error {
	s := &scanner{in: bufio.NewReader(in)}
	first, err := s.next()
	if err != nil {
		return err
	}
	if first != '{' {
		return errors.New("it is no JSON object")
	}
	if err := s.object(want, 1); err != nil {
		return err
	}
	switch _, err := s.next(); {
	case err == nil:
		return errors.New("something comes after the JSON object")
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	}
	return nil
}

// read gives a byte. The end is always too early but where scanObject expects it.
func (s *scanner) read() (byte, error) {
	c, err := s.in.ReadByte()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return c, err
}

// next gives the next byte that is no white space.
func (s *scanner) next() (byte, error) {
	for {
		c, err := s.read()
		if err != nil || !isSpace(c) {
			return c, err
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// value reads one that begins with first.
func (s *scanner) value(first byte, want *wanted, depth int) error {
	if want != nil && want.text != nil && first != '"' && first != 'n' {
		return errors.New("what should be a string is none")
	}
	if depth > deepest {
		return fmt.Errorf("it is nested deeper than %d", deepest)
	}
	switch first {
	case '{':
		return s.object(want, depth)
	case '[':
		return s.array(depth)
	case '"':
		isKept := want != nil && want.text != nil
		text, err := s.text(isKept)
		if err == nil && isKept {
			*want.text = text
		}
		return err
	default:
		return s.word(first)
	}
}

// object reads the members of one to its end.
func (s *scanner) object(want *wanted, depth int) error {
	c, err := s.next()
	if err != nil || c == '}' {
		return err
	}
	for {
		if c != '"' {
			return unexpected(c, "the name of a member")
		}
		name, err := s.text(want.hasMembers())
		if err != nil {
			return err
		}
		if c, err = s.next(); err != nil {
			return err
		}
		if c != ':' {
			return unexpected(c, "a colon")
		}
		if c, err = s.next(); err != nil {
			return err
		}
		if err := s.value(c, want.member(name), depth+1); err != nil {
			return err
		}
		var isOver bool
		if c, isOver, err = s.more('}'); err != nil || isOver {
			return err
		}
	}
}

// array reads the elements of one to its end.
func (s *scanner) array(depth int) error {
	c, err := s.next()
	if err != nil || c == ']' {
		return err
	}
	for {
		if err := s.value(c, nil, depth+1); err != nil {
			return err
		}
		var isOver bool
		if c, isOver, err = s.more(']'); err != nil || isOver {
			return err
		}
	}
}

// more reads the comma after a value and the first byte of what follows it, or the end.
func (s *scanner) more(end byte) (first byte, isOver bool, err error) {
	c, err := s.next()
	if err != nil || c == end {
		return 0, c == end, err
	}
	if c != ',' {
		return 0, false, unexpected(c, "a comma")
	}
	first, err = s.next()
	return first, false, err
}

// text reads a string after its first quote. Without isKept it is empty.
func (s *scanner) text(isKept bool) (string, error) {
	s.raw = append(s.raw[:0], '"')
	for {
		c, err := s.read()
		if err != nil {
			return "", err
		}
		if isKept {
			if len(s.raw) > longestKept {
				return "", fmt.Errorf("a name or a string that matters has more than %d bytes", longestKept)
			}
			s.raw = append(s.raw, c)
		}
		switch {
		case c == '"' && !isKept:
			return "", nil
		case c == '"':
			var text string
			err := json.Unmarshal(s.raw, &text)
			return text, err
		case c < ' ':
			return "", unexpected(c, "a string's next character")
		case c == '\\':
			if err := s.escape(isKept); err != nil {
				return "", err
			}
		}
	}
}

// escape reads what follows a backslash.
func (s *scanner) escape(isKept bool) error {
	c, err := s.read()
	if err != nil {
		return err
	}
	if !strings.ContainsRune(`"\/bfnrtu`, rune(c)) {
		return unexpected(c, "an escape")
	}
	escaped := []byte{c}
	if c == 'u' {
		for range 4 {
			if c, err = s.read(); err != nil {
				return err
			}
			if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
				return unexpected(c, "a hexadecimal digit")
			}
			escaped = append(escaped, c)
		}
	}
	if isKept {
		s.raw = append(s.raw, escaped...)
	}
	return nil
}

// word reads a number, true, false or null.
func (s *scanner) word(first byte) error {
	s.raw = s.raw[:0]
	for c := first; ; {
		if !isOfWord(c) {
			if err := s.in.UnreadByte(); err != nil {
				return err
			}
			break
		}
		if len(s.raw) > longestKept {
			return fmt.Errorf("a number has more than %d digits", longestKept)
		}
		s.raw = append(s.raw, c)
		var err error
		if c, err = s.in.ReadByte(); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	if len(s.raw) == 0 {
		return unexpected(first, "a value")
	}
	if !json.Valid(s.raw) {
		return errors.New("it has a word that is no value")
	}
	return nil
}

func isOfWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '+' || c == '-' || c == '.'
}

func unexpected(c byte, want string) error {
	return fmt.Errorf("it has %q where %s has to be", rune(c), want)
}
