package history

import (
	"crypto/sha1"
	"fmt"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// verify checks that what was read is the object of the id. libgit2 would do the same
// with a SHA-1 that also finds contents made to share an id, at several times the cost:
// what strangers send is looked at for that by git when it is fetched, and what this
// package writes by put.
func verify(id object.ID, kind git.ObjectType, content []byte) error {
	if sumOf(kind, content) != id {
		return fmt.Errorf("read %s: it has other bytes: %w", id, ErrDamaged)
	}
	return nil
}

// sumOf is the id of an object.
func sumOf(kind git.ObjectType, content []byte) object.ID {
	sum := sha1.New()
	sum.Write(fmt.Appendf(nil, "%s %d\x00", kindName(kind), len(content)))
	sum.Write(content)
	return object.ID(sum.Sum(nil))
}
