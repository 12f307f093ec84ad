package metadata

import (
	"slices"
	"strings"
)

// Vacated are the directories that hold nothing in a tree with the record before, and that
// a tree with the record after has no more, unless something is committed there. Each comes
// after those in it.
func Vacated(before, after Record) []string {
	stay := map[string]bool{}
	for path, entry := range after.All() {
		if entry.Kind == Empty {
			addWithAncestors(stay, path)
		}
	}
	gone := map[string]bool{}
	for path, entry := range before.All() {
		if entry.Kind == Empty && !stay[path] {
			addWithAncestors(gone, path)
		}
	}
	var paths []string
	for path := range gone {
		if !stay[path] {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(b, a) })
	return paths
}

// addWithAncestors adds a path and the directories above it. Those above one that is there
// are there.
func addWithAncestors(set map[string]bool, path string) {
	set[path] = true
	for above := range ancestors(path) {
		if set[above] {
			return
		}
		set[above] = true
	}
}
