package history

import (
	"errors"
	"fmt"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

var (
	// ErrMissing says that an object is not in the repository, though something
	// names it: what was to be fetched was not, or the store lost it.
	ErrMissing = errors.New("the object is not in the repository")
	// ErrDamaged says that an object is in the repository and cannot be used: its
	// bytes are not those of its id.
	ErrDamaged = errors.New("the object is damaged")
	// ErrMalformed says that an object is as somebody made it, and means nothing: no
	// other copy of it is any better.
	ErrMalformed = errors.New("the object is malformed")
	// ErrTooLarge says that an object or a result is above the bound that keeps the
	// driver's memory safe from a repository made to exhaust it.
	ErrTooLarge = errors.New("too large to be held in memory")
	// ErrNotFound says that a tree has no entry at a path.
	ErrNotFound = errors.New("no such path in the tree")
	// ErrNotCommit says that an id is of an object that is no commit, nor a tag of one.
	ErrNotCommit = errors.New("the object is no commit")
)

// IsBroken tells of the errors of a repository that lacks what it has to have, or cannot be
// read: another one may be better.
func IsBroken(err error) bool { return errors.Is(err, ErrMissing) || errors.Is(err, ErrDamaged) }

// lookup is the error of reading an object, as the caller decides on it.
func lookup(id object.ID, err error) error {
	if git.IsErrorCode(err, git.ErrorCodeNotFound) {
		return fmt.Errorf("read %s: %w", id, ErrMissing)
	}
	return fmt.Errorf("read %s: %w: %w", id, ErrDamaged, err)
}

// kindError is the error of an object that is of another kind than it is used as.
func kindError(id object.ID, got, want git.ObjectType) error {
	if want == git.ObjectCommit {
		return fmt.Errorf("%s is a %s: %w", id, kindName(got), ErrNotCommit)
	}
	return fmt.Errorf("%s is a %s where a %s is wanted: %w", id, kindName(got), kindName(want), ErrMalformed)
}

// kindName is the name of a kind of object, as its header has it.
func kindName(kind git.ObjectType) string {
	switch kind {
	case git.ObjectCommit:
		return "commit"
	case git.ObjectTree:
		return "tree"
	case git.ObjectBlob:
		return "blob"
	case git.ObjectTag:
		return "tag"
	}
	return "unknown object"
}
