package history

import "strings"

// configParser reads a file in the format of git's configuration.
type configParser struct {
	rest string
	in   configSection
}

// configSection is what a section is of, as the submodule of a name.
type configSection struct {
	of, name string
	named    bool
}

// parseConfig calls with each value, in order, until there is an error or a mistake in
// the file, which is none: git reads no further as well.
func parseConfig(content []byte, call func(in configSection, key, value string) error) error {
	p := configParser{rest: strings.ReplaceAll(strings.TrimPrefix(string(content), "\ufeff"), "\r\n", "\n")}
	for {
		p.rest = strings.TrimLeft(p.rest, " \t\n\r")
		switch {
		case p.rest == "":
			return nil
		case p.rest[0] == '#' || p.rest[0] == ';':
			_, p.rest, _ = strings.Cut(p.rest, "\n")
		case p.rest[0] == '[':
			if !p.section() {
				return nil
			}
		default:
			key, value, ok := p.variable()
			if !ok {
				return nil
			}
			if err := call(p.in, key, value); err != nil {
				return err
			}
		}
	}
}

// next takes one byte.
func (p *configParser) next() (byte, bool) {
	if p.rest == "" {
		return 0, false
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c, true
}

// section reads a section's header, [section "name"] or [section.name].
func (p *configParser) section() bool {
	p.rest = p.rest[1:]
	end := strings.IndexFunc(p.rest, func(c rune) bool {
		return c > 0x7f || c != '.' && c != '-' && !isAlnum(byte(c))
	})
	if end < 0 {
		return false
	}
	title := strings.ToLower(p.rest[:end])
	p.rest = p.rest[end:]
	first, name, named := strings.Cut(title, ".")
	switch c, _ := p.next(); c {
	case ']':
	case ' ', '\t':
		quoted, ok := p.quoted()
		if !ok {
			return false
		}
		if named {
			name += "."
		}
		name, named = name+quoted, true
	default:
		return false
	}
	p.in = configSection{of: first, name: name, named: named}
	return true
}

// quoted reads a section's name in quotes, up to the bracket.
func (p *configParser) quoted() (string, bool) {
	p.rest = strings.TrimLeft(p.rest, " \t\r")
	if c, _ := p.next(); c != '"' {
		return "", false
	}
	var name []byte
	for {
		c, ok := p.next()
		switch {
		case !ok || c == '\n':
			return "", false
		case c == '"':
			c, _ := p.next()
			return string(name), c == ']'
		case c == '\\':
			if c, ok = p.next(); !ok || c == '\n' {
				return "", false
			}
		}
		name = append(name, c)
	}
}

// variable reads a key and its value, which is empty if there is none.
func (p *configParser) variable() (key, value string, ok bool) {
	end := 0
	for end < len(p.rest) && (p.rest[end] == '-' || isAlnum(p.rest[end])) {
		end++
	}
	key = strings.ToLower(p.rest[:end])
	if key == "" || key[0] < 'a' {
		return "", "", false
	}
	p.rest = strings.TrimLeft(p.rest[end:], " \t")
	switch c, more := p.next(); {
	case !more || c == '\n':
		return key, "", true
	case c != '=':
		return "", "", false
	}
	value, ok = p.value()
	return key, value, ok
}

// value reads a value up to the end of its line, with quotes, escapes and a comment.
func (p *configParser) value() (string, bool) {
	var value []byte
	quote, comment, keep := false, false, 0
	for {
		c, ok := p.next()
		if !ok || c == '\n' {
			return string(value[:keep]), !quote
		}
		if comment {
			continue
		}
		space := strings.IndexByte(" \t\r", c) >= 0
		switch {
		case space && !quote:
			if len(value) > 0 {
				value = append(value, c)
			}
			continue // Kept only if something follows.
		case !quote && (c == ';' || c == '#'):
			comment = true
			continue
		case c == '"':
			quote = !quote
			keep = len(value)
			continue
		case c == '\\':
			if c, ok = p.next(); c == '\n' || !ok {
				continue
			}
			at := strings.IndexByte("tbn\\\"", c)
			if at < 0 {
				return "", false
			}
			c = "\t\b\n\\\""[at]
		}
		value = append(value, c)
		keep = len(value)
	}
}

func isAlnum(c byte) bool { return c >= '0' && c <= '9' || lower(c) >= 'a' && lower(c) <= 'z' }
