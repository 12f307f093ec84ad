package metadata

// Prune is the record without the entries about what a tree no longer holds, for
// example after upstream deleted a directory whose files had entries. kindOf says
// what the tree has at a path: File, Directory, Link, or the zero Kind for nothing.
//
// Empty directories are in no tree of git's, so they stay unless a file is in their
// way; one that is not empty any more keeps its mode and owner as a directory.
func (r Record) Prune(kindOf func(path string) Kind) Record {
	// A directory that holds nothing but empty ones is in no tree either.
	implied := map[string]bool{}
	for path, entry := range r.All() {
		if entry.Kind != Empty || !isFree(path, kindOf) {
			continue
		}
		for above := range ancestors(path) {
			if implied[above] {
				break
			}
			implied[above] = true
		}
	}
	lines := make([]line, 0, len(r.lines))
	for path, entry := range r.All() {
		if kept := prune(path, entry, kindOf, implied[path]); !kept.IsZero() {
			lines = append(lines, line{path, kept})
		}
	}
	return Record{lines}
}

func prune(path string, entry Entry, kindOf func(string) Kind, implied bool) Entry {
	if path == Root {
		return entry
	}
	kind := kindOf(path)
	if kind == 0 && implied {
		kind = Directory
	}
	switch {
	case entry.Kind == kind:
		return entry
	case entry.Kind == Empty && kind == Directory:
		entry.Kind = Directory
		return entry
	case entry.Kind == Empty && kind == 0 && isFree(path, kindOf):
		return entry
	}
	return Entry{}
}

// isFree tells whether a directory can be made at path: neither it nor one of its
// ancestors is a file or a link.
func isFree(path string, kindOf func(string) Kind) bool {
	if kind := kindOf(path); kind != 0 {
		return kind == Directory
	}
	for above := range ancestors(path) {
		if kind := kindOf(above); kind != 0 {
			return kind == Directory
		}
	}
	return true
}
