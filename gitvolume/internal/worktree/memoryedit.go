package worktree

import (
	"slices"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

// Edit is what a path is to be remembered as. The zero Entry forgets the path, and all
// below it.
type Edit struct {
	Path string
	Entry
}

// With is the memory with the edits made. An Entry with Mode object.Directory or
// object.Submodule is of a directory, whose content stays as it is; any other forgets
// all that was below the path. Directories on the way that nothing is remembered of are
// to be looked at. Of two edits of one path the later counts. A memory of a commit is
// With of its files alone, without Stat: each is read by the next scan.
func (m *Memory) With(edits []Edit) *Memory {
	root := *m.top()
	steps := make([]step, 0, len(edits))
	for i := range edits {
		e := &edits[i]
		if e.Path == "." {
			root.become(e.Entry)
			continue
		}
		name, rest, _ := strings.Cut(e.Path, "/")
		steps = append(steps, step{name: name, rest: rest, entry: &e.Entry})
	}
	return &Memory{root: root.edited(steps)}
}

// step is an edit on its way down: name and rest are what is left of its path.
type step struct {
	name, rest string
	entry      *Entry
}

func (f *folder) become(e Entry) {
	f.stat, f.left, f.module = e.Stat, e.Left, object.ID{}
	if e.Mode == object.Submodule {
		f.module = e.Blob
	}
}

// edited is the folder with the steps made; it stays as it is itself.
func (f *folder) edited(steps []step) *folder {
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Compare(a.name, b.name) })
	after := *f
	after.files = make([]file, 0, len(f.files)+len(steps))
	after.subs = make([]*folder, 0, len(f.subs)+len(steps))
	files, subs := f.files, f.subs
	for len(steps) > 0 {
		name := steps[0].name
		n := 1
		for n < len(steps) && steps[n].name == name {
			n++
		}
		old := slot{}
		files, old.file = moveUpTo(&after.files, files, name, func(f *file) string { return f.name })
		var sub **folder
		subs, sub = moveUpTo(&after.subs, subs, name, func(f **folder) string { return (*f).name })
		if sub != nil {
			old.folder = *sub
		}
		became := old.edited(name, steps[:n])
		if became.file != nil {
			after.files = append(after.files, *became.file)
		}
		if became.folder != nil {
			after.subs = append(after.subs, became.folder)
		}
		steps = steps[n:]
	}
	after.files = append(after.files, files...)
	after.subs = append(after.subs, subs...)
	return after.compact().counted()
}

// moveUpTo appends what comes before name, and gives what comes after it and what has
// that name.
func moveUpTo[T any](to *[]T, from []T, name string, nameOf func(*T) string) (rest []T, found *T) {
	at, is := slices.BinarySearchFunc(from, name, func(t T, name string) int { return strings.Compare(nameOf(&t), name) })
	*to = append(*to, from[:at]...)
	if !is {
		return from[at:], nil
	}
	return from[at+1:], &from[at]
}

// slot is what stands at a name: a file, a folder or nothing.
type slot struct {
	file   *file
	folder *folder
}

func (s slot) edited(name string, steps []step) slot {
	below := make([]step, 0, len(steps))
	for _, st := range steps {
		if st.rest != "" {
			below = append(below, st)
			continue
		}
		e := st.entry
		switch {
		case e.isZero():
			s = slot{}
		case e.Mode == object.Directory || e.Mode == object.Submodule:
			dir := folder{name: name}
			if s.folder != nil {
				dir = *s.folder
			}
			dir.become(*e)
			s = slot{folder: dir.counted()}
		default:
			s = slot{file: &file{name: name, stat: e.Stat, blob: e.Blob, mode: trackedAs(e.Mode), racy: e.Racy, left: e.Left}}
		}
	}
	if s.folder == nil {
		// Below nothing, or a file, there is nothing to forget.
		below = slices.DeleteFunc(below, func(st step) bool { return st.entry.isZero() })
	}
	if len(below) == 0 {
		return s
	}
	if s.folder == nil {
		s = slot{folder: &folder{name: name}}
	}
	for i := range below {
		below[i].name, below[i].rest, _ = strings.Cut(below[i].rest, "/")
	}
	return slot{folder: s.folder.edited(below)}
}
