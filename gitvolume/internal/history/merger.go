package history

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/object"
)

// Merger merges as git does, with all that follows from finding renames. Where two
// sides changed the same path its word is the only one: a merge of the driver's own
// could succeed where git sees a conflict.
type Merger interface {
	// MergeTrees merges the trees of two commits of the repository, whose one parent
	// both times is the commit with the base's tree. attributes are the .gitattributes
	// files that count, by path: nothing else of a work tree is there. The tree is one
	// that git has written to the repository. Where git sees a conflict there is none,
	// and conflicts names the paths, at least one.
	MergeTrees(ctx context.Context, ours, theirs object.ID, attributes map[string][]byte) (tree object.ID, conflicts []string, err error)
}

// Conflict is the error of a rebase that git would not have finished either, or that
// nobody is asked about: changes meet, and the attributes files that say how to merge them
// take more than 4 MiB in whole pages, lie at a path longer than a work tree can have, or in
// more directories than can be looked into. The volume then goes on as after any other
// conflict.
type Conflict struct {
	// Commit is the commit that could not be replayed.
	Commit object.ID
	// Paths are where it conflicts, as the Merger names them, or the attributes file or
	// directory with which they are too much.
	Paths []string
}

// Error names the commit and a few of the paths.
func (c *Conflict) Error() string {
	const shown = 3
	switch n := len(c.Paths); {
	case n == 1:
		return fmt.Sprintf("the commit %s conflicts at %q", c.Commit, c.Paths[0])
	case n <= shown:
		return fmt.Sprintf("the commit %s conflicts at %q", c.Commit, c.Paths)
	default:
		return fmt.Sprintf("the commit %s conflicts at %d paths, such as %q", c.Commit, n, c.Paths[:shown])
	}
}

// ask has the Merger merge three trees: the objects are made durable first, as another
// process has to read them.
func (m *merging) ask(ctx context.Context, base, ours, theirs object.ID) (object.ID, []string, error) {
	attributes, err := m.attributes(base, ours, theirs)
	var many *tooManyAttributes
	if errors.As(err, &many) {
		return object.ID{}, []string{many.path}, nil
	}
	if err != nil {
		return object.ID{}, nil, fmt.Errorf("find the attributes: %w", err)
	}
	parent, err := m.repository.standIn(base)
	if err != nil {
		return object.ID{}, nil, err
	}
	one, err := m.repository.standIn(ours, parent)
	if err != nil {
		return object.ID{}, nil, err
	}
	other, err := m.repository.standIn(theirs, parent)
	if err != nil {
		return object.ID{}, nil, err
	}
	if err := m.repository.Flush(); err != nil {
		return object.ID{}, nil, err
	}
	tree, conflicts, err := m.merger.MergeTrees(ctx, one, other, attributes)
	switch {
	case err != nil:
		return object.ID{}, nil, fmt.Errorf("merge with git: %w", err)
	case len(conflicts) > 0:
		return object.ID{}, conflicts, nil
	case tree.IsZero():
		return object.ID{}, nil, errors.New("merge with git: it gave no tree and no conflict")
	}
	return withoutEmpty(tree), nil, nil
}

// standIn makes a commit that is there for its tree alone. It is the same one for the
// same trees, so a gc keeps one of all that were made.
func (r *Repository) standIn(tree object.ID, parents ...object.ID) (object.ID, error) {
	nobody := Signature{Name: "git-csi-driver", Email: "git-csi-driver@git.liken.sh", When: time.Unix(0, 0).UTC()}
	return r.Commit(Draft{Tree: tree, Parents: parents, Author: nobody, Committer: nobody, Message: "Merge trees"})
}

// withoutEmpty gives the empty tree the id it has in this package, the zero one.
func withoutEmpty(tree object.ID) object.ID {
	if tree.String() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904" {
		return object.ID{}
	}
	return tree
}
