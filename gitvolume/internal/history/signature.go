package history

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ErrIdentity says that a name has nothing that a commit could hold.
var ErrIdentity = errors.New("the name is empty, or of marks alone")

// Signature is who made a commit and when.
type Signature struct {
	Name, Email string
	When        time.Time
}

// crud are the marks, beside blanks and control characters, that git takes off both
// ends of a name.
const crud = `.,:;<>"\'`

// encode is the signature as a commit has it. What would end a name or an address early
// is left out, as git does itself: a server's check refuses a commit with it for ever.
func (s Signature) encode() (string, error) {
	name := clean(s.Name)
	if name == "" {
		return "", fmt.Errorf("%q: %w", s.Name, ErrIdentity)
	}
	// A clock before 1970 must not keep a volume from being committed.
	seconds := max(s.When.Unix(), 0)
	_, offset := s.When.Zone()
	sign := '+'
	if offset < 0 {
		sign, offset = '-', -offset
	}
	minutes := offset / 60
	return fmt.Sprintf("%s <%s> %d %c%02d%02d", name, clean(s.Email), seconds, sign, min(minutes/60, 99), minutes%60), nil
}

// isSignature tells whether `git fsck --strict`, and so a server that checks, takes a line
// that says who and when. It takes more than git writes, such as an empty name.
func isSignature(line string) bool {
	name, rest, ok := strings.Cut(line, "<")
	if !ok || !strings.HasSuffix(name, " ") || strings.ContainsAny(name, ">\n\x00") {
		return false
	}
	email, rest, ok := strings.Cut(rest, "> ")
	if !ok || strings.ContainsAny(email, "<>\n\x00") {
		return false
	}
	seconds, zone, ok := strings.Cut(rest, " ")
	if !ok || !isDigits(seconds) || len(seconds) > 1 && seconds[0] == '0' {
		return false
	}
	if n, err := strconv.ParseInt(seconds, 10, 64); err != nil || n == math.MaxInt64 {
		return false
	}
	return len(zone) == 5 && (zone[0] == '+' || zone[0] == '-') && isDigits(zone[1:])
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// orNamed is the signature with a name that a commit can hold, if it has none: a commit
// that others made must not keep a volume from being rebased.
func (s Signature) orNamed() Signature {
	if clean(s.Name) == "" {
		s.Name = s.Email
	}
	if clean(s.Name) == "" {
		s.Name = "unknown"
	}
	return s
}

// clean is a name or an address without what git leaves out.
func clean(text string) string {
	text = strings.TrimFunc(strings.ReplaceAll(text, "\x00", ""), func(r rune) bool {
		return r <= ' ' || strings.ContainsRune(crud, r)
	})
	return strings.NewReplacer("\n", "", "<", "", ">", "").Replace(text)
}
