// Package quote writes texts of somebody else (a user's value, a file name, the words
// of a remote) so that they can stand in a log, an Event, an error or a command.
//
// What it gives for people is one line of valid UTF-8 without anything that a terminal
// or a log would obey, and bounded: a hostile megabyte fills nothing. It must never
// change what a text says but by leaving out, and never hide that something is left out.
package quote

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// valueLength is how much of a value is shown, in bytes before quoting: enough for
// every legal name of Kubernetes.
const valueLength = 254

// omitted stands where something is missing.
const omitted = "..."

// Value is what somebody wrote into a field, as Go would write it. Of a long one "(cut)"
// says that there is more.
func Value(s string) string {
	if len(s) > valueLength {
		return fmt.Sprintf("%q (cut)", s[:valueLength])
	}
	return strconv.Quote(s)
}

// Words returns s Go-quoted, in no more than most bytes; "..." after the closing quote
// says that some are missing. Fewer than 5 leave room for nothing and give the empty
// string.
func Words(s string, most int) string {
	const quotes = 2
	if most < quotes+len(omitted) {
		return ""
	}
	plain := func(r rune) bool { return r != '"' && r != '\\' && strconv.IsPrint(r) }
	if text, whole := escape(s, most-quotes, plain); whole {
		return `"` + text + `"`
	}
	text, _ := escape(s, most-quotes-len(omitted), plain)
	return `"` + text + `"` + omitted
}

// Printable makes s valid UTF-8 of at most most bytes, cut at a rune boundary. Bytes that
// are no UTF-8 and runes that are not printable (a newline, an escape sequence, a change
// of the writing direction) are written as Go would escape them; quotes and backslashes
// stay, so that Printable of its own result is that result.
func Printable(s string, most int) string {
	text, _ := escape(s, most, strconv.IsPrint)
	return text
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

// Lines makes one Go-quoted line of all that somebody said, its lines parted by " | ". Of
// more than most bytes, counted before quoting, the beginning and the end are kept: a
// server begins to explain at the one, and gives its verdict at the other. Empty stays
// empty.
func Lines(text string, most int) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	text = strings.ToValidUTF8(strings.Join(lines, " | "), "?")
	if text == "" {
		return ""
	}
	if len(text) > most {
		head, tail := most*2/3, len(text)-most/3
		for !utf8.RuneStart(text[head]) {
			head--
		}
		for tail < len(text) && !utf8.RuneStart(text[tail]) {
			tail++
		}
		text = text[:head] + " " + omitted + " " + text[tail:]
	}
	return strconv.Quote(text)
}

// Shell is the word as a POSIX shell reads it as one. Nothing of it is left out.
func Shell(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
