package ignore

import (
	"fmt"
	"strings"
)

// Tree answers for single paths, in any order, where a Level answers for a walk from
// the root. It remembers each directory that it came through, so it is for one look
// at a tree, after which ignore files may have changed. It must not be used by two
// goroutines at once.
type Tree struct {
	class  Patterns
	read   func(dir string) (Patterns, error)
	levels map[string]*Level
}

// NewTree makes a Tree of the class's patterns and of read, which gives the patterns
// of the .gitignore in a directory, whose path from the root has no slash at its
// end and is empty for the root itself. It is called once for each directory at
// most, and never for an ignored one. A directory without a .gitignore, or one that
// is gone, has the zero Patterns and no error.
func NewTree(class Patterns, read func(dir string) (Patterns, error)) *Tree {
	return &Tree{class: class, read: read, levels: make(map[string]*Level)}
}

// Ignored is the verdict on an untracked path from the root, with single slashes
// between its components and none at its ends. Its parents count as directories. The
// error is that of reading a directory's patterns.
func (t *Tree) Ignored(path string, isDir bool) (Verdict, error) {
	dir, name := split(path)
	l, err := t.level(dir)
	if err != nil {
		return Verdict{}, err
	}
	return l.Ignored(name, isDir), nil
}

func (t *Tree) level(dir string) (*Level, error) {
	if l := t.levels[dir]; l != nil {
		return l, nil
	}
	l, err := t.enter(dir)
	if err != nil {
		return nil, err
	}
	t.levels[dir] = l
	return l, nil
}

func (t *Tree) enter(dir string) (*Level, error) {
	if dir == "" {
		own, err := t.patterns(dir)
		if err != nil {
			return nil, err
		}
		return Root(t.class, own), nil
	}
	above, name := split(dir)
	parent, err := t.level(above)
	if err != nil {
		return nil, err
	}
	if parent.ignored.Ignored() || parent.Ignored(name, true).Ignored() {
		return parent.Enter(name, Patterns{}), nil
	}
	own, err := t.patterns(dir)
	if err != nil {
		return nil, err
	}
	return parent.Enter(name, own), nil
}

func (t *Tree) patterns(dir string) (Patterns, error) {
	own, err := t.read(dir)
	if err != nil {
		return Patterns{}, fmt.Errorf("read the ignore patterns of directory %q: %w", dir, err)
	}
	return own, nil
}

// split cuts the last component off a path; the rest has no slash at its end.
func split(path string) (dir, name string) {
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 {
		return "", path
	}
	return path[:slash], path[slash+1:]
}
