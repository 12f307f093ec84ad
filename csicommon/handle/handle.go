// Package handle decides whether a string can be a volume handle
// (spec.csi.volumeHandle), and if it cannot, which rule it broke.
//
// A handle becomes exactly one path component below a driver's store, so a
// handle that passes Check holds no separator, no "." or ".." and no byte that
// a file system or a log could read as anything but itself. The rules are those
// of a DNS-1123 subdomain (RFC 1123, as Kubernetes applies it to object names):
// only the total length is bounded, so one label of 253 bytes is legal.
//
// The package must never repair a handle: two spellings of one volume would be
// two directories.
package handle

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"liken.sh/csicommon/quote"
)

// MaxLength is the longest handle, in bytes.
const MaxLength = 253

// ErrInvalid is wrapped by every error of Check.
var ErrInvalid = errors.New("not a volume handle")

// Check returns nil when h is a volume handle. Otherwise the error wraps
// ErrInvalid, names the first broken rule and quotes h as Go would, so no raw
// control byte reaches a log or an Event.
func Check(h string) error {
	rule := brokenRule(h)
	if rule == "" {
		return nil
	}
	return fmt.Errorf("volume handle %s is refused: %s: %w", quote.Value(h), rule, ErrInvalid)
}

func brokenRule(h string) string {
	switch {
	case h == "":
		return "it is empty, a handle has 1 to 253 bytes"
	case len(h) > MaxLength:
		return fmt.Sprintf("it is %d bytes long, a handle has at most %d", len(h), MaxLength)
	}
	if rule := brokenByteRule(h); rule != "" {
		return rule
	}
	for i, segment := range strings.Split(h, ".") {
		if rule := brokenSegmentRule(segment, i+1); rule != "" {
			return rule
		}
	}
	return ""
}

func brokenByteRule(h string) string {
	for i := 0; i < len(h); i++ {
		switch c := h[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
		case 'A' <= c && c <= 'Z':
			return fmt.Sprintf("byte %d is the upper-case letter %q, only lower case is allowed", i+1, c)
		case c == '/':
			return fmt.Sprintf("byte %d is %q, a handle is one path component", i+1, c)
		case c == '_':
			return fmt.Sprintf("byte %d is an underscore, use %q", i+1, '-')
		case c == 0x7f || c < ' ':
			return fmt.Sprintf("byte %d is the control byte 0x%02x, only a-z, 0-9, '-' and '.' are allowed", i+1, c)
		case c >= utf8.RuneSelf:
			return fmt.Sprintf("byte %d is 0x%02x, outside ASCII, only a-z, 0-9, '-' and '.' are allowed", i+1, c)
		default:
			return fmt.Sprintf("byte %d is %q, only a-z, 0-9, '-' and '.' are allowed", i+1, c)
		}
	}
	return ""
}

// brokenSegmentRule checks the n-th (from 1) part between dots, whose bytes are
// all allowed ones.
func brokenSegmentRule(segment string, n int) string {
	switch {
	case segment == "":
		return fmt.Sprintf("part %d between the dots is empty", n)
	case segment[0] == '-':
		return fmt.Sprintf("part %d starts with '-', each part starts with a letter or a digit", n)
	case segment[len(segment)-1] == '-':
		return fmt.Sprintf("part %d ends with '-', each part ends with a letter or a digit", n)
	}
	return ""
}
