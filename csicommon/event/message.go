package event

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxMessage is the longest message of an Event, in bytes (the limit of
// events.k8s.io, which the API server applies to newer kinds of Events).
const MaxMessage = 1024

// Message makes s what an Event's message must be: valid UTF-8 of at most
// MaxMessage bytes, cut at a rune boundary. Bytes that are no UTF-8 and runes
// that are not printable (a newline, an escape sequence, a change of the writing
// direction) are written as Go would escape them. Message(Message(s)) is Message(s).
func Message(s string) string {
	text, _ := escape(s, MaxMessage, strconv.IsPrint)
	return text
}

// Quote returns the words of somebody else (a remote, a file name) Go-quoted, in
// no more than most bytes; "..." after the closing quote says that some are missing.
// Fewer than 5 leave room for nothing and give the empty string.
func Quote(words string, most int) string {
	const quotes, cut = 2, "..."
	if most < quotes+len(cut) {
		return ""
	}
	plain := func(r rune) bool { return r != '"' && r != '\\' && strconv.IsPrint(r) }
	if text, whole := escape(words, most-quotes, plain); whole {
		return `"` + text + `"`
	}
	text, _ := escape(words, most-quotes-len(cut), plain)
	return `"` + text + `"` + cut
}

// escape copies s in no more than most bytes, and tells whether all of it had room. It
// ends before the first rune, or escape, that has none: neither is cut in two.
func escape(s string, most int, plain func(rune) bool) (text string, whole bool) {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		piece := s[:size]
		if (r == utf8.RuneError && size == 1) || !plain(r) {
			quoted := strconv.Quote(piece)
			piece = quoted[1 : len(quoted)-1]
		}
		if b.Len()+len(piece) > most {
			return b.String(), false
		}
		b.WriteString(piece)
		s = s[size:]
	}
	return b.String(), true
}
