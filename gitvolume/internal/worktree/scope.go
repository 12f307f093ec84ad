package worktree

import (
	"fmt"
	"strings"
)

// scope is what a scan looks at in and below one directory, apart from the directory
// itself.
type scope struct {
	// all is everything below.
	all bool
	// below are the names to look at.
	below map[string]*scope
}

const ignoreFile = ".gitignore"

func newScope(paths, subtrees []string) (*scope, error) {
	root := &scope{}
	for _, path := range paths {
		// What an ignore file says counts for all below its directory, of which the
		// ignored part is not remembered.
		if dir, name := split(path); name == ignoreFile {
			if err := root.add(dir, true); err != nil {
				return nil, err
			}
		}
		if err := root.add(path, false); err != nil {
			return nil, err
		}
	}
	for _, path := range subtrees {
		if err := root.add(path, true); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// add adds the path, and all below it if that is said.
func (sc *scope) add(path string, all bool) error {
	at, rest := sc, path
	switch path {
	case ".":
		rest = ""
	case "":
		return fmt.Errorf("look at %q: %w", path, ErrName)
	}
	for rest != "" {
		name, more, _ := strings.Cut(rest, "/")
		if !isName(name) {
			return fmt.Errorf("look at %q: %w", path, ErrName)
		}
		next := at.below[name]
		if next == nil {
			next = &scope{}
			if at.below == nil {
				at.below = map[string]*scope{}
			}
			at.below[name] = next
		}
		at, rest = next, more
	}
	at.all = at.all || all
	return nil
}

// of is what is to be looked at below the entry name.
func (sc *scope) of(name string) *scope {
	if sc.all {
		return sc
	}
	if below := sc.below[name]; below != nil {
		return below
	}
	return &scope{}
}

// isName tells whether a directory can have an entry of that name.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}
