package writeable

import (
	"maps"
	"slices"

	"liken.sh/gitvolume/internal/metadata"
	"liken.sh/gitvolume/internal/watch"
)

// longestAgenda is how many paths are kept apart: above that a look at everything costs
// little more.
const longestAgenda = 10_000

// agenda is what may have changed since the last commit.
type agenda struct {
	everything      bool
	paths, subtrees map[string]struct{}
}

func (a *agenda) add(h watch.Hint) {
	if h.Everything {
		a.addEverything()
	}
	a.addPaths(h.Paths)
	a.addSubtrees(h.Subtrees)
}

func (a *agenda) isEmpty() bool { return !a.everything && len(a.paths)+len(a.subtrees) == 0 }

func (a *agenda) addEverything() { *a = agenda{everything: true} }

func (a *agenda) addPaths(paths []string) { a.put(&a.paths, paths) }

func (a *agenda) addSubtrees(paths []string) { a.put(&a.subtrees, paths) }

func (a *agenda) put(into *map[string]struct{}, paths []string) {
	for _, path := range paths {
		if a.everything {
			return
		}
		if *into == nil {
			*into = map[string]struct{}{}
		}
		(*into)[path] = struct{}{}
		if len(*into) > longestAgenda {
			a.addEverything()
		}
	}
}

// lists are what to look at, as a scan is given it.
func (a *agenda) lists() (paths, subtrees []string) {
	if a.everything {
		return nil, []string{metadata.Root}
	}
	return slices.Sorted(maps.Keys(a.paths)), slices.Sorted(maps.Keys(a.subtrees))
}
