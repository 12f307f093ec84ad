package attributes

import (
	"errors"
	"fmt"
	"strings"

	"liken.sh/csicommon/quote"
	"liken.sh/gitvolume/internal/object"
)

const (
	branchPrefix = "refs/heads/"
	lockSuffix   = ".lock"
	// sha256Digits is how many a SHA-256 object's id has.
	sha256Digits = 64
)

// Ref is what a volume follows: a branch, a tag, any full ref, or, read-only, one
// commit. Two refs are equal only as they are written; whether a short name is a branch
// or a tag only the remote knows.
type Ref struct {
	name   string
	commit object.ID
}

// String is the ref as it was written.
func (r Ref) String() string { return r.name }

// Commit returns the commit if the ref is a full commit id.
func (r Ref) Commit() (object.ID, bool) { return r.commit, !r.commit.IsZero() }

// Full returns the ref's full name if it was written, as "refs/...". A short name is a
// branch's, or else a tag's.
func (r Ref) Full() (string, bool) { return r.name, strings.HasPrefix(r.name, "refs/") }

// Branch returns the full name of the branch that the ref can be: a writeable volume's
// is always one. It is empty for a commit and for a full name of anything else.
func (r Ref) Branch() string {
	_, full := r.Full()
	switch {
	case !r.commit.IsZero(), full && !strings.HasPrefix(r.name, branchPrefix):
		return ""
	case full:
		return r.name
	}
	return branchPrefix + r.name
}

// SideBranch is the full name of the branch on which the volume of a handle goes on
// while it cannot on the full branch.
func SideBranch(branch, handle string) string { return branch + "." + handle }

// parseRef reads the ref of a volume of the kind.
func parseRef(kind Kind, text, handle string) (Ref, error) {
	if rule := brokenNameRule(text); rule != "" {
		return Ref{}, refuse(text, rule)
	}
	r := Ref{name: text}
	if isHexadecimal(text) && (len(text) == 2*object.IDSize || len(text) == sha256Digits) {
		commit, err := object.Parse(text)
		switch {
		case errors.Is(err, object.ErrSHA256):
			return Ref{}, refuse(text, "is the id of a commit in a repository with SHA-256 ids, which are not served; a branch of that name is refs/heads/...")
		case err != nil:
			return Ref{}, refuse(text, "is the id of a commit with digits in upper case; write them in lower case, or refs/heads/... for a branch of that name")
		case commit.IsZero():
			return Ref{}, refuse(text, "is the id of no commit")
		}
		r.commit = commit
	}
	if kind == KindWriteable {
		if rule := r.brokenWriteableRule(handle); rule != "" {
			return Ref{}, refuse(text, rule)
		}
	}
	return r, nil
}

// brokenNameRule checks a name as it is written, before anything is known of its kind.
func brokenNameRule(text string) string {
	switch {
	case text == "":
		return "is empty: write a branch or leave it out for " + defaultRef
	case text[0] == '-':
		return "starts with '-': git would take it for an option"
	case text == "HEAD" || text == "@":
		return "is no branch or tag: name the branch"
	}
	full := text
	if !strings.HasPrefix(text, "refs/") {
		full = branchPrefix + text
	}
	return brokenRefRule(full)
}

// brokenWriteableRule checks what a volume that is pushed needs besides.
func (r Ref) brokenWriteableRule(handle string) string {
	branch := r.Branch()
	switch {
	case !r.commit.IsZero():
		return "is a commit, which a writeable volume cannot be pushed to; name a branch"
	case branch == "":
		return "is no branch, and a writeable volume is pushed to one; write its name or refs/heads/..."
	}
	side := SideBranch(branch, handle)
	if rule := brokenRefRule(side); rule != "" {
		return fmt.Sprintf("with the volume's handle gives the side branch %s, which %s", quote.Value(side), rule)
	}
	// The branch is a part of it.
	if err := object.CheckRefLength(side); err != nil {
		return fmt.Sprintf("with the volume's handle gives the side branch %s: %v", quote.Value(side), err)
	}
	return ""
}

func isHexadecimal(text string) bool { return strings.Trim(text, "0123456789abcdefABCDEF") == "" }

// brokenRefRule checks a full name by the rules of git-check-ref-format.
func brokenRefRule(name string) string {
	if rule := controlByte(name); rule != "" {
		return rule
	}
	if i := strings.IndexAny(name, " ~^:?*[\\"); i >= 0 {
		return fmt.Sprintf("has a %q, which no ref has", name[i])
	}
	for _, sequence := range []string{"..", "@{"} {
		if strings.Contains(name, sequence) {
			return fmt.Sprintf("has %q in it, which no ref has", sequence)
		}
	}
	if strings.HasSuffix(name, ".") {
		return "ends with a dot, as no ref does"
	}
	components := strings.Split(name, "/")
	for _, component := range components {
		switch {
		case component == "":
			return "starts or ends with a slash, or has two in a row"
		case component[0] == '.':
			return "has a part that starts with a dot, as no ref has"
		case strings.HasSuffix(component, lockSuffix):
			return fmt.Sprintf("has a part that ends with %q, as no ref has", lockSuffix)
		}
	}
	if len(components) < 2 {
		return "is a name without a slash"
	}
	return ""
}
