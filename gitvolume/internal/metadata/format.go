package metadata

import (
	"strconv"
	"unicode/utf8"
)

// header is the first line of a record: what it is, and the version of its form.
const header = "git-csi-metadata 1"

// kindNames are the words for the kinds, by Kind.
func kindNames() [Link + 1]string {
	return [...]string{File: "file", Directory: "dir", Empty: "empty", Link: "link"}
}

// Format is the record as text. Equal records give equal bytes, whatever they were
// read from, so a record that did not change makes no new blob:
//
//	git-csi-metadata 1
//	file 0640 1000 - "etc/a b"
//	empty - - - "spool"
//
// Each line is the kind, mode, owner, group and path, "-" standing for what is as in
// a fresh checkout.
func (r Record) Format() []byte {
	text := make([]byte, 0, len(header)+1+48*len(r.lines))
	text = append(text, header...)
	text = append(text, '\n')
	for _, l := range r.lines {
		text = l.append(text)
	}
	return text
}

// Fits tells whether the record as text is no larger than MaxSize, at the cost of a walk
// through it. One that is not must not be written: nobody would read it.
func (r Record) Fits() bool {
	size := len(header) + 1
	var text []byte
	for _, l := range r.lines {
		text = l.append(text[:0])
		size += len(text)
	}
	return size <= MaxSize
}

func (l line) append(text []byte) []byte {
	names := kindNames()
	text = append(text, names[l.entry.Kind]...)
	text = appendMode(append(text, ' '), l.entry.Mode)
	text = appendID(append(text, ' '), l.entry.Owner)
	text = appendID(append(text, ' '), l.entry.Group)
	text = appendQuoted(append(text, ' '), l.path)
	return append(text, '\n')
}

func appendMode(text []byte, mode Field) []byte {
	if !mode.set {
		return append(text, '-')
	}
	for shift := 9; shift >= 0; shift -= 3 {
		text = append(text, '0'+byte(mode.number>>shift&7))
	}
	return text
}

func appendID(text []byte, id Field) []byte {
	if !id.set {
		return append(text, '-')
	}
	return strconv.AppendUint(text, uint64(id.number), 10)
}

// appendQuoted writes path between quotes: printable ASCII and UTF-8 as they are, every
// other byte as \xNN. strconv.Quote is not used because what it escapes follows the
// Unicode tables of the Go that built it, so an update would rewrite every record.
func appendQuoted(text []byte, path string) []byte {
	const digits = "0123456789abcdef"
	text = append(text, '"')
	for len(path) > 0 {
		c := path[0]
		r, size := utf8.DecodeRuneInString(path)
		switch {
		case c == '"' || c == '\\':
			text = append(text, '\\', c)
		case c < ' ' || c == 0x7f || r == utf8.RuneError && size == 1:
			text = append(text, '\\', 'x', digits[c>>4], digits[c&0xf])
		default:
			text = append(text, path[:size]...)
		}
		path = path[size:]
	}
	return append(text, '"')
}
