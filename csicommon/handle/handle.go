// Package handle decides whether a string can be a volume handle
// (spec.csi.volumeHandle), and if it cannot, which rules it broke.
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
	"slices"
	"strings"
	"unicode/utf8"

	"liken.sh/csicommon/quote"
)

// MaxLength is the longest handle, in bytes.
const MaxLength = 253

// ErrInvalid is wrapped by every error of Check.
var ErrInvalid = errors.New("not a volume handle")

// Check returns nil when h is a volume handle. Otherwise the error wraps
// ErrInvalid, names each broken rule where it is broken first, and quotes h as Go
// would, so no raw control byte reaches a log or an Event.
func Check(h string) error {
	rules := brokenRules(h)
	if len(rules) == 0 {
		return nil
	}
	return fmt.Errorf("volume handle %s is refused: %s: %w", quote.Value(h), strings.Join(rules, "; "), ErrInvalid)
}

// brokenRules are all of them: a handle cannot be changed, so whoever mends one
// rule a time writes a PersistentVolume for each.
func brokenRules(h string) []string {
	if h == "" {
		return []string{"it is empty, a handle has 1 to 253 bytes"}
	}
	var broken []string
	if len(h) > MaxLength {
		broken = append(broken, fmt.Sprintf("it is %d bytes long, a handle has at most %d", len(h), MaxLength))
	}
	broken = append(broken, brokenByteRules(h)...)
	return append(broken, brokenPartRules(h)...)
}

func brokenByteRules(h string) []string {
	var broken, told []string
	for i := 0; i < len(h); i++ {
		rule := byteRule(h[i])
		if rule == "" || slices.Contains(told, rule) {
			continue
		}
		told = append(told, rule)
		broken = append(broken, fmt.Sprintf("byte %d is %s, %s", i+1, describe(h[i]), rule))
	}
	return broken
}

// byteRule is the rule that the byte breaks, empty for an allowed one.
func byteRule(c byte) string {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
		return ""
	case 'A' <= c && c <= 'Z':
		return "only lower case is allowed"
	case c == '/':
		return "a handle is one path component"
	case c == '_':
		return "use '-'"
	}
	return "only a-z, 0-9, '-' and '.' are allowed"
}

func describe(c byte) string {
	switch {
	case 'A' <= c && c <= 'Z':
		return fmt.Sprintf("the upper-case letter %q", c)
	case c == '_':
		return "an underscore"
	case c == 0x7f || c < ' ':
		return fmt.Sprintf("the control byte 0x%02x", c)
	case c >= utf8.RuneSelf:
		return fmt.Sprintf("0x%02x, outside ASCII", c)
	}
	return fmt.Sprintf("%q", c)
}

// brokenPartRules looks at what is between dots, counted from 1.
func brokenPartRules(h string) []string {
	var broken, told []string
	tell := func(part int, rule string) {
		if !slices.Contains(told, rule) {
			told = append(told, rule)
			broken = append(broken, fmt.Sprintf("part %d %s", part, rule))
		}
	}
	n := 0
	for part := range strings.SplitSeq(h, ".") {
		n++
		if part == "" {
			tell(n, "between the dots is empty")
			continue
		}
		if part[0] == '-' {
			tell(n, "starts with '-', each part starts with a letter or a digit")
		}
		if part[len(part)-1] == '-' {
			tell(n, "ends with '-', each part ends with a letter or a digit")
		}
	}
	return broken
}
