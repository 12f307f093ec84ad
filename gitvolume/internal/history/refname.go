package history

import (
	"errors"
	"fmt"
	"strings"

	git "github.com/libgit2/git2go/v34"
)

// ErrRefName says that git, or the store's disk, cannot hold a ref of that name.
var ErrRefName = errors.New("no name for a ref")

// Bounds of a ref's name on disk: each part is a file or a directory, beside which a
// file with ".lock" at its end has to fit.
const (
	maxRefPart = 255 - len(".lock")
	maxRef     = 3000
)

// CheckRef refuses what is no full name of a ref, such as refs/heads/main. The error
// is ErrRefName.
func CheckRef(name string) error {
	if strings.ContainsAny(name, "\x00\x7f") { // libgit2 would end at NUL, and takes DEL.
		return fmt.Errorf("%q holds NUL or DEL: %w", name, ErrRefName)
	}
	if !strings.HasPrefix(name, "refs/") {
		return fmt.Errorf("%q does not start with refs/: %w", name, ErrRefName)
	}
	valid, err := git.ReferenceNameIsValid(name)
	if err != nil || !valid {
		return fmt.Errorf("%q is against git's rules: %w", name, ErrRefName)
	}
	if len(name) > maxRef {
		return fmt.Errorf("it has %d bytes, at most %d can be kept: %w", len(name), maxRef, ErrRefName)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxRefPart {
			return fmt.Errorf("the part %q has %d bytes, at most %d can be kept: %w", part, len(part), maxRefPart, ErrRefName)
		}
	}
	return nil
}
