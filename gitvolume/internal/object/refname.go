package object

import (
	"errors"
	"fmt"
	"strings"
)

// The bounds of a ref's full name, in bytes. They are the driver's own, since the name
// has to fit on disk and into a tree, and less than what git and servers take.
const (
	// MaxRefPart is of a part between slashes: git keeps it as a file or a directory,
	// beside which the name with ".lock" added has to fit, of 255 bytes.
	MaxRefPart = 255 - len(".lock")
	// MaxRef is of the whole, which is part of a path of less than 4,096 bytes.
	MaxRef = 3000
	// MaxEscapedRef is of the whole as EscapeRef writes it: git warns of longer names in
	// a tree, and some servers refuse them.
	MaxEscapedRef = 4095
)

// ErrRefLength is wrapped by every error of CheckRefLength.
var ErrRefLength = errors.New("too long for a ref")

// CheckRefLength refuses a ref's full name that is beyond the bounds. It looks at nothing
// else of the name.
func CheckRefLength(name string) error {
	if len(name) > MaxRef {
		return fmt.Errorf("the name has %d bytes, at most %d can be kept: %w", len(name), MaxRef, ErrRefLength)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > MaxRefPart {
			return fmt.Errorf("a part between slashes has %d bytes, at most %d can be kept: %w", len(part), MaxRefPart, ErrRefLength)
		}
	}
	if escaped := len(EscapeRef(name)); escaped > MaxEscapedRef {
		return fmt.Errorf("the name of its record has %d bytes, since bytes other than letters and digits count three times, and at most %d can be kept: %w",
			escaped, MaxEscapedRef, ErrRefLength)
	}
	return nil
}

// EscapeRef is a ref's full name as one name in a tree: every byte but letters, digits,
// ".", "-" and "_" as %XX. So feature and feature/foo are names beside each other, and
// no ref has the name of another.
func EscapeRef(ref string) string {
	const digits = "0123456789ABCDEF"
	var name strings.Builder
	for i := range len(ref) {
		switch c := ref[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
			name.WriteByte(c)
		default:
			name.Write([]byte{'%', digits[c>>4], digits[c&0xf]})
		}
	}
	return name.String()
}
