package history

import (
	"fmt"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

const (
	attributesFile = ".gitattributes"
	// maxMergeAttributes bounds what all attributes files of a merge take together, each of
	// them whole pages of attributesPage: they are held in memory, and laid out in the
	// repository meanwhile.
	maxMergeAttributes = 4 << 20
	attributesPage     = 4 << 10
	// ignoredAttributes is the size from which git passes over one: 100 MiB.
	ignoredAttributes = 100 << 20
	// maxAttributesPath is the longest path of one that a disk can hold beside what
	// stands before it, of the 4,095 bytes that a system call takes.
	maxAttributesPath = 3 << 10
)

// tooManyAttributes says that a merge's attributes are beyond what can be held, or laid
// out as a work tree.
type tooManyAttributes struct{ path string }

func (t *tooManyAttributes) Error() string {
	return fmt.Sprintf("with %q the attributes of the merge are too much", t.path)
}

// tooMany names the topmost directory, since the path itself may be too long for anybody.
func tooMany(path string) error {
	top, _, _ := strings.Cut(path, "/")
	return &tooManyAttributes{top}
}

// attributes are the .gitattributes files, by path, that say how git merges what differs
// between the trees: those of our tree, as it would stand in the work tree in which git
// rebases, in the directories where something changed and in those above.
func (m *merging) attributes(base, ours, theirs object.ID) (map[string][]byte, error) {
	a := attributing{merging: m, files: map[string][]byte{}}
	if err := a.directory("", base, ours, theirs, 0); err != nil {
		return nil, err
	}
	return a.files, nil
}

// attributing collects attributes files.
type attributing struct {
	*merging
	files  map[string][]byte
	size   int64
	looked int
}

// directory looks at a directory in which something changed.
func (a *attributing) directory(prefix string, base, ours, theirs object.ID, depth int) error {
	if a.looked++; depth > maxDepth || a.looked > maxDirectories {
		return tooMany(prefix)
	}
	return a.trees.match(base, ours, theirs, func(base, ours, theirs *node) error {
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
	// No work tree could have another, and its name must not lead out of one.
	if possible := CheckPath(path) == nil; !possible {
		return nil
	}
	_, size, err := a.repository.header(blob)
	switch {
	case err != nil:
		return fmt.Errorf("look at %q: %w", path, err)
	case size >= ignoredAttributes:
		return nil
	case len(path) > maxAttributesPath:
		return tooMany(path)
	case a.size+paged(size) > maxMergeAttributes:
		return &tooManyAttributes{path}
	}
	content, err := a.repository.Content(blob)
	if err != nil {
		return fmt.Errorf("read %q: %w", path, err)
	}
	a.size += paged(size)
	a.files[path] = content
	return nil
}

// paged is what a file of that size takes, in bytes; an empty one has to be held, too.
func paged(size int64) int64 {
	return max(1, (size+attributesPage-1)/attributesPage) * attributesPage
}
