package history

import (
	"errors"
	"fmt"

	"liken.sh/gitvolume/internal/object"
)

const (
	attributesFile = ".gitattributes"
	// maxAttributes bounds what all attributes files of a merge hold together.
	maxAttributes = 16 << 20
)

// attributes are the .gitattributes files, by path, that say how git merges what differs
// between the trees: those of our tree, as it would stand in the work tree in which git
// rebases, in the directories where something changed and in those above.
func (r *Repository) attributes(base, ours, theirs object.ID) (map[string][]byte, error) {
	a := attributing{repository: r, files: map[string][]byte{}}
	if err := a.directory("", base, ours, theirs, 0); err != nil {
		return nil, err
	}
	return a.files, nil
}

// attributing collects attributes files.
type attributing struct {
	repository *Repository
	files      map[string][]byte
	size, read int
}

// directory looks at a directory in which something changed.
func (a *attributing) directory(prefix string, base, ours, theirs object.ID, depth int) error {
	if a.read++; depth > maxDepth || a.read > maxDifferences {
		return fmt.Errorf("look into %d directories, of which one lies %d deep: %w", a.read, depth, ErrTooLarge)
	}
	return a.repository.matchThree(base, ours, theirs, func(base, ours, theirs *node) error {
		switch {
		case ours == nil:
			// Where we have no directory we have no attributes in it.
			return nil
		case ours.name == attributesFile && ours.entry().Mode.IsFile():
			return a.add(prefix+attributesFile, ours.id)
		case !ours.isDir() || same(base, ours) && same(base, theirs):
			return nil
		}
		return a.directory(prefix+ours.name+"/", directoryID(base), ours.id, directoryID(theirs), depth+1)
	})
}

func (a *attributing) add(path string, blob object.ID) error {
	if CheckPath(path) != nil {
		// No work tree could have it, and the name must not lead out of one.
		return nil
	}
	content, err := a.repository.Content(blob)
	if errors.Is(err, ErrTooLarge) {
		return nil // git passes over one of 100 MiB
	}
	if err != nil {
		return fmt.Errorf("read %q: %w", path, err)
	}
	if a.size += len(content); a.size > maxAttributes {
		return fmt.Errorf("read attributes of more than %d bytes: %w", maxAttributes, ErrTooLarge)
	}
	a.files[path] = content
	return nil
}

// directoryID is the id of a directory; the empty tree's of anything else.
func directoryID(n *node) object.ID {
	if n == nil || !n.isDir() {
		return object.ID{}
	}
	return n.id
}
