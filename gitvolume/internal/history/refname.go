package history

import (
	"errors"
	"fmt"
	"strings"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// ErrRefName says that git, or the store's disk, cannot hold a ref of that name.
var ErrRefName = errors.New("no name for a ref")

// CheckRef refuses what is no full name of a ref, such as refs/heads/main, or a longer
// one than object.CheckRefLength allows. The error is ErrRefName.
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
	if err := object.CheckRefLength(name); err != nil {
		return fmt.Errorf("%w: %w", ErrRefName, err)
	}
	return nil
}
