package worktree

import (
	"iter"
	"slices"
	"strings"

	"liken.sh/gitvolume/internal/object"
)

// Memory is what is remembered of a tree: of each path that is tracked or was left out
// what the disk showed when it was looked at, and what is committed there; and of each
// directory. Ignored files, and all in ignored directories, are not in it. It never
// changes; the Memories of two scans share what is equal. The nil Memory is that of an
// empty tree.
type Memory struct{ root *folder }

// Entry is what is remembered of one path. The zero Entry is that of a path about
// which nothing is.
type Entry struct {
	// Stat is what the disk showed. The zero Stat says that the path is to be looked at
	// in any case.
	Stat Stat
	// Mode is what is committed: object.Directory for a directory, 0 for a path that is
	// not tracked.
	Mode object.Mode
	// Blob is the committed content, or a submodule's commit; for a directory zero.
	Blob object.ID
	// Racy says that Stat may hide a change: the next scan reads the file again.
	Racy bool
	// Left is why what the disk holds is not what is committed.
	Left Reason
}

// isZero tells whether nothing is remembered.
func (e Entry) isZero() bool { return e == Entry{} }

// file is a path that is no directory. It is kept small: there are many.
type file struct {
	name   string
	stat   Stat
	blob   object.ID
	mode   tracked
	left   Reason
	passes uint8 // How often in a row it changed while it was read.
	racy   bool
}

// tracked is a Mode in one byte.
type tracked uint8

const (
	untracked tracked = iota
	regular
	executable
	symlink
)

func trackedAs(mode object.Mode) tracked {
	switch mode {
	case object.Regular:
		return regular
	case object.Executable:
		return executable
	case object.Symlink:
		return symlink
	}
	return untracked
}

func (t tracked) mode() object.Mode {
	return [...]object.Mode{untracked: 0, regular: object.Regular, executable: object.Executable, symlink: object.Symlink}[t]
}

func (f *file) entry() Entry {
	return Entry{Stat: f.stat, Mode: f.mode.mode(), Blob: f.blob, Racy: f.racy, Left: f.left}
}

// folder is a directory. Both lists are sorted by name, and no name is in both.
type folder struct {
	name  string
	stat  Stat
	files []file
	subs  []*folder
	// module is the commit of a submodule, of which the directory is the place.
	module object.ID
	left   Reason
	// count is how many tracked paths there are in it and below.
	count int
}

func (f *folder) entry() Entry {
	e := Entry{Stat: f.stat, Mode: object.Directory, Left: f.left}
	if !f.module.IsZero() {
		e.Mode, e.Blob = object.Submodule, f.module
	}
	return e
}

// counted is the folder with its count made right; those of the folders in it are.
func (f *folder) counted() *folder {
	f.count = 0
	if !f.module.IsZero() {
		f.count++
	}
	for i := range f.files {
		if f.files[i].mode != untracked {
			f.count++
		}
	}
	for _, sub := range f.subs {
		f.count += sub.count
	}
	return f
}

// compact is the folder with no more room in its lists than they need, and the names of
// its files in one piece: each by itself keeps a page of the heap that is garbage but for
// some names. The list of files is nobody else's.
func (f *folder) compact() *folder {
	if cap(f.files) > len(f.files) {
		f.files = exact(f.files)
	}
	if cap(f.subs) > len(f.subs) {
		f.subs = exact(f.subs)
	}
	size := 0
	for i := range f.files {
		size += len(f.files[i].name)
	}
	var names strings.Builder
	names.Grow(size)
	for i := range f.files {
		names.WriteString(f.files[i].name)
	}
	rest := names.String()
	for i := range f.files {
		name := &f.files[i].name
		*name, rest = rest[:len(*name)], rest[len(*name):]
	}
	return f
}

// exact is a copy with no more room than it needs, which slices.Clone gives.
func exact[T any](list []T) []T { return append(make([]T, 0, len(list)), list...) }

func (f *folder) file(name string) *file {
	if f == nil {
		return nil
	}
	at, found := slices.BinarySearchFunc(f.files, name, func(f file, name string) int { return strings.Compare(f.name, name) })
	if !found {
		return nil
	}
	return &f.files[at]
}

func (f *folder) sub(name string) *folder {
	if f == nil {
		return nil
	}
	at, found := slices.BinarySearchFunc(f.subs, name, func(f *folder, name string) int { return strings.Compare(f.name, name) })
	if !found {
		return nil
	}
	return f.subs[at]
}

func (m *Memory) top() *folder {
	if m == nil || m.root == nil {
		return &folder{}
	}
	return m.root
}

// find is the directory at path, nil if none is remembered.
func (m *Memory) find(path string) *folder {
	at := m.top()
	if path == "." || path == "" {
		return at
	}
	for name := range strings.SplitSeq(path, "/") {
		at = at.sub(name)
	}
	return at
}

// Entry is what is remembered of path, "." being the root; the zero Entry if nothing is.
func (m *Memory) Entry(path string) Entry {
	if f := m.find(path); f != nil {
		return f.entry()
	}
	dir, name := split(path)
	if f := m.find(dir).file(name); f != nil {
		return f.entry()
	}
	return Entry{}
}

// Tracked is how many paths are tracked, directories not counted.
func (m *Memory) Tracked() int { return m.top().count }

// All gives everything that is remembered below the root, and the root itself as ".",
// a directory before what is in it.
func (m *Memory) All() iter.Seq2[string, Entry] {
	return func(yield func(string, Entry) bool) {
		m.top().each(".", func(path string, f *folder) bool {
			if !yield(path, f.entry()) {
				return false
			}
			for i := range f.files {
				if !yield(join(path, f.files[i].name), f.files[i].entry()) {
					return false
				}
			}
			return true
		})
	}
}

// Directories gives the directory at path, "." being the root, and those below it, with
// their inodes: what a watch has to cover. Ignored ones are not among them.
func (m *Memory) Directories(path string) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		start := m.find(path)
		if start == nil {
			return
		}
		start.each(path, func(path string, f *folder) bool {
			return f.stat.Inode == 0 || yield(path, f.stat.Inode)
		})
	}
}

// Skipped gives every path that is left out, and why.
func (m *Memory) Skipped() iter.Seq2[string, Reason] {
	return func(yield func(string, Reason) bool) {
		for path, entry := range m.All() {
			if entry.Left != 0 && !yield(path, entry.Left) {
				return
			}
		}
	}
}

// each visits the folder, which is at path, and all below.
func (f *folder) each(path string, visit func(path string, f *folder) bool) bool {
	if !visit(path, f) {
		return false
	}
	for _, sub := range f.subs {
		if !sub.each(join(path, sub.name), visit) {
			return false
		}
	}
	return true
}

// join is the path of name in the directory at path.
func join(path, name string) string {
	if path == "." || path == "" {
		return name
	}
	return path + "/" + name
}

// split cuts the last component off a path; what is left is "." for one in the root.
func split(path string) (dir, name string) {
	slash := strings.LastIndexByte(path, '/')
	if slash < 0 {
		return ".", path
	}
	return path[:slash], path[slash+1:]
}
