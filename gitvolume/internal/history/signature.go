package history

import (
	"errors"
	"fmt"
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

// clean is a name or an address without what git leaves out.
func clean(text string) string {
	text = strings.TrimFunc(strings.ReplaceAll(text, "\x00", ""), func(r rune) bool {
		return r <= ' ' || strings.ContainsRune(crud, r)
	})
	return strings.NewReplacer("\n", "", "<", "", ">", "").Replace(text)
}
