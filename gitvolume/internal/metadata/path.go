package metadata

import (
	"errors"
	"fmt"
	"strings"
)

// Root is the path of the tree's own root.
const Root = "."

// MaxPath is the longest path of an entry, in bytes: sixteen times what a system call
// takes, as a tree is entered one directory at a time.
const MaxPath = 64 << 10

// MaxNames is how many names an entry's path may have: no tree that is committed has
// deeper directories, and with as many as fit in MaxPath, what looks at each directory
// above a path would take hours for a record of such paths.
const MaxNames = 2048

// checkPath refuses what names nothing below the root, so that no reader of a record
// can be led out of its tree by ".." or an absolute path.
func checkPath(path string, kind Kind) error {
	switch {
	case path == Root && kind == Directory:
		return nil
	case len(path) > MaxPath:
		return fmt.Errorf("the path has %d bytes, at most %d are allowed", len(path), MaxPath)
	case strings.Count(path, "/") >= MaxNames:
		return fmt.Errorf("the path has more than %d names", MaxNames)
	case strings.IndexByte(path, 0) >= 0:
		return errors.New("the path holds a NUL")
	}
	for component := range strings.SplitSeq(path, "/") {
		switch component {
		case "", ".", "..":
			return fmt.Errorf("the path has the component %q", component)
		}
	}
	return nil
}

// ancestors gives the directories above path, from the nearest one up, without the root.
func ancestors(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for at := strings.LastIndexByte(path, '/'); at > 0; at = strings.LastIndexByte(path[:at], '/') {
			if !yield(path[:at]) {
				return
			}
		}
	}
}
