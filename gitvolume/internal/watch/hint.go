package watch

import (
	"slices"
	"strings"
)

const (
	// How much is remembered by name; more than that is everything. At the 100 bytes
	// or so of a usual path this is some 500 KiB.
	mostPaths    = 4096
	mostSubtrees = 256
	mostBytes    = 512 << 10
)

// Hint is what an owner should look at. Paths are relative to the root, of any bytes,
// and "." is the root itself. What they name may be of any kind, unchanged or gone.
type Hint struct {
	// Everything says to look at the whole tree; Paths and Subtrees are empty then.
	Everything bool
	// Subtrees are directories of which all that is below may have changed. Sorted.
	Subtrees []string
	// Paths may have changed: content, metadata, existence. Sorted.
	Paths []string
	// Gone says that the root's path is no longer the directory that Start was given:
	// it was moved, deleted, replaced or hidden. That stays so; there will be no more
	// events worth anything.
	Gone bool

	announced pending // What the events said, where Everything comes from the owner.
	held      held    // The watches that there were when the hint was taken.
	renewed   bool    // The watches were set up anew for this hint.
	losses    int     // Of the Watch, when the hint was taken.
	misses    int
}

// Empty says that there is nothing to look at.
func (h Hint) Empty() bool {
	return !h.Everything && !h.Gone && len(h.Subtrees) == 0 && len(h.Paths) == 0
}

// pending collects what events announce, in bounded memory.
type pending struct {
	everything bool
	paths      map[string]struct{}
	subtrees   map[string]struct{}
	bytes      int
}

func (p *pending) addPath(path string) { p.add(&p.paths, path, mostPaths) }

func (p *pending) addSubtree(path string) {
	if path == "." {
		p.addEverything()
		return
	}
	p.add(&p.subtrees, path, mostSubtrees)
}

func (p *pending) addEverything() { *p = pending{everything: true} }

func (p *pending) add(set *map[string]struct{}, path string, most int) {
	if p.everything {
		return
	}
	if _, met := (*set)[path]; met {
		return
	}
	if len(*set) >= most || p.bytes+len(path) > mostBytes {
		p.addEverything()
		return
	}
	if *set == nil {
		*set = map[string]struct{}{}
	}
	(*set)[path] = struct{}{}
	p.bytes += len(path)
}

// merge adds the subtrees of other, or everything.
func (p *pending) merge(other pending) {
	if other.everything {
		p.addEverything()
	}
	for path := range other.subtrees {
		p.addSubtree(path)
	}
}

// empty says that nothing is pending.
func (p *pending) empty() bool {
	return !p.everything && len(p.paths) == 0 && len(p.subtrees) == 0
}

// covers says whether path was announced.
func (p *pending) covers(path string) bool {
	if p.everything {
		return true
	}
	if _, met := p.paths[path]; met {
		return true
	}
	return p.below(path)
}

// below says whether path is one of the subtrees or in one.
func (p *pending) below(path string) bool {
	if len(p.subtrees) == 0 {
		return false
	}
	for {
		if _, met := p.subtrees[path]; met {
			return true
		}
		cut := strings.LastIndexByte(path, '/')
		if cut < 0 {
			return false
		}
		path = path[:cut]
	}
}

// hint lists what is pending, each path once.
func (p *pending) hint() Hint {
	h := Hint{Everything: p.everything, announced: *p}
	for path := range p.paths {
		if !p.below(path) {
			h.Paths = append(h.Paths, path)
		}
	}
	for path := range p.subtrees {
		parent := strings.LastIndexByte(path, '/')
		if parent < 0 || !p.below(path[:parent]) {
			h.Subtrees = append(h.Subtrees, path)
		}
	}
	slices.Sort(h.Paths)
	slices.Sort(h.Subtrees)
	return h
}
