package ignore

// Level answers for the entries of one directory. It never changes: one Level may be
// asked by many goroutines, and is shared with those below it.
type Level struct {
	parent *Level
	name   string
	// scopes are the files that count here, the least first.
	scopes []scope
	// size is what Size tells.
	size int
	// ignored is what decided that the directory itself is ignored.
	ignored Verdict
}

// Root is the level of a tree's root. The class's patterns are anchored there; own is
// the .gitignore of the root.
func Root(class, own Patterns) *Level {
	l := &Level{}
	if class.list != nil {
		l.scopes = append(l.scopes, newScope(class.list, nil))
	}
	if own.list != nil {
		l.scopes = append(l.scopes, newScope(own.list, l))
	}
	return l
}

// Enter is the level of the directory name, of which own is the .gitignore. If the
// directory is ignored then so is all below, and own counts for nothing: there is no
// need to read it.
func (l *Level) Enter(name string, own Patterns) *Level {
	below := &Level{parent: l, name: name}
	if v := l.Ignored(name, true); v.Ignored() {
		below.ignored = v
		return below
	}
	below.scopes = make([]scope, 0, len(l.scopes)+1)
	below.size = cap(below.scopes) * scopeBytes
	for i := range l.scopes {
		s := l.scopes[i].enter(name)
		if !s.shares(&l.scopes[i]) {
			below.size += s.size()
		}
		below.scopes = append(below.scopes, s)
	}
	if own.list != nil {
		below.scopes = append(below.scopes, newScope(own.list, below))
	}
	return below
}

// Size is about how many bytes of memory the level takes beyond those above it, and beyond
// the patterns of its own file. Each level below may take as much as the patterns that
// are in force have parts, so whoever goes down a deep tree that others make needs a bound.
func (l *Level) Size() int { return l.size }

// Ignored is the verdict on the untracked entry name of the level's directory; name
// is one component. A symbolic link is no directory, wherever it leads. The empty
// name, which is the tree's root, matches nothing.
func (l *Level) Ignored(name string, isDir bool) Verdict {
	if l.ignored.Ignored() {
		return l.ignored
	}
	if name == "" {
		return Verdict{}
	}
	for i := len(l.scopes) - 1; i >= 0; i-- {
		if r := l.scopes[i].find(name, isDir); r != nil {
			return Verdict{r, l.scopes[i].base}
		}
	}
	return Verdict{}
}

// path is the directory's path from the root with a slash at its end, or empty.
func (l *Level) path() string {
	if l.parent == nil {
		return ""
	}
	return l.parent.path() + l.name + "/"
}
