package history

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	git "github.com/libgit2/git2go/v34"

	"liken.sh/gitvolume/internal/object"
)

// Bounds of what is read into memory, far above what is of use and far below what
// exhausts a node: a tree of that size has millions of entries in one directory.
const (
	maxTree    = 256 << 20
	maxEntries = 4 << 20 // In one tree: an entry takes far more memory than bytes of it.
	maxDepth   = 2048    // Directories below each other; a path of the kernel has no more.
)

// Entry is one name in a directory. Its Mode is one that git writes today; its Name is
// whatever bytes the tree holds, so CheckName has to be asked before it becomes a file.
type Entry struct {
	Name string
	Mode object.Mode
	ID   object.ID
}

// node is an entry as a tree has it.
type node struct {
	raw  []byte // Mode, blank, name, NUL, id: what is written back untouched.
	mode uint32
	name string
	id   object.ID
}

// isDir tells whether the entry is a directory.
func (n node) isDir() bool { return n.mode&0o170000 == uint32(object.Directory) }

// entry is the node with a mode that git writes today, as git itself reads odd ones.
func (n node) entry() Entry {
	mode := object.Submodule
	switch n.mode & 0o170000 {
	case 0o100000:
		mode = object.Regular
		if n.mode&0o100 != 0 {
			mode = object.Executable
		}
	case 0o120000:
		mode = object.Symlink
	case 0o040000:
		mode = object.Directory
	}
	return Entry{Name: n.name, Mode: mode, ID: n.id}
}

// newNode makes an entry to be written.
func newNode(name string, mode object.Mode, id object.ID) node {
	raw := make([]byte, 0, 8+len(name)+object.IDSize)
	raw = fmt.Appendf(raw, "%o %s\x00", uint32(mode), name)
	return node{raw: append(raw, id[:]...), mode: uint32(mode), name: name, id: id}
}

// Entries is what a directory holds, in the tree's order. The zero id is the empty tree.
func (r *Repository) Entries(tree object.ID) ([]Entry, error) {
	nodes, err := r.nodes(tree)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(nodes))
	for i, n := range nodes {
		entries[i] = n.entry()
	}
	return entries, nil
}

// Find is the entry at a path below a tree, or ErrNotFound. An empty path is the tree.
func (r *Repository) Find(tree object.ID, path string) (Entry, error) {
	found := Entry{Mode: object.Directory, ID: tree}
	if path == "" {
		return found, nil
	}
	depth := 0
	for name := range strings.SplitSeq(path, "/") {
		if found.Mode != object.Directory {
			return Entry{}, fmt.Errorf("find %q: %w", path, ErrNotFound)
		}
		if depth++; depth > maxDepth {
			return Entry{}, fmt.Errorf("find a path of more than %d names: %w", maxDepth, ErrTooLarge)
		}
		nodes, err := r.nodes(found.ID)
		if err != nil {
			return Entry{}, err
		}
		at := slices.IndexFunc(nodes, func(n node) bool { return n.name == name })
		if at < 0 {
			return Entry{}, fmt.Errorf("find %q: %w", path, ErrNotFound)
		}
		found = nodes[at].entry()
	}
	return found, nil
}

// nodes reads a tree.
func (r *Repository) nodes(tree object.ID) ([]node, error) {
	if tree.IsZero() {
		return nil, nil
	}
	content, err := r.get(tree, git.ObjectTree, maxTree)
	if err != nil {
		return nil, err
	}
	nodes, err := parseTree(content)
	if err != nil {
		return nil, fmt.Errorf("read the tree %s: %w", tree, err)
	}
	return nodes, nil
}

// parseTree reads a tree's entries, which stay in the bytes given. Names are taken as
// they are, in the order they are in: only what has no meaning is an error.
func parseTree(content []byte) ([]node, error) { return parseEntries(content, maxEntries) }

// parseEntries is parseTree for so many entries at most.
func parseEntries(content []byte, most int) ([]node, error) {
	// The shortest entry is a mode, a blank, one byte of name, NUL and the id.
	nodes := make([]node, 0, min(len(content)/(object.IDSize+10), 1<<16))
	names := string(content) // One copy for all names.
	for rest := content; len(rest) > 0; {
		blank := bytes.IndexByte(rest[:min(len(rest), 8)], ' ')
		if blank <= 0 {
			return nil, fmt.Errorf("an entry has no mode: %w", ErrMalformed)
		}
		var mode uint32
		for _, digit := range rest[:blank] {
			if digit < '0' || digit > '7' {
				return nil, fmt.Errorf("the mode %q is not octal: %w", rest[:blank], ErrMalformed)
			}
			mode = mode<<3 | uint32(digit-'0')
		}
		end := bytes.IndexByte(rest[blank+1:], 0)
		if end <= 0 {
			return nil, fmt.Errorf("an entry has no name: %w", ErrMalformed)
		}
		end += blank + 1
		after := end + 1 + object.IDSize
		if len(nodes) >= most {
			return nil, fmt.Errorf("it has more than %d entries: %w", most, ErrTooLarge)
		}
		if after > len(rest) {
			return nil, fmt.Errorf("the last entry is cut off: %w", ErrMalformed)
		}
		nodes = append(nodes, node{
			raw:  rest[:after:after],
			mode: mode,
			name: names[len(content)-len(rest):][blank+1 : end],
			id:   object.ID(rest[end+1 : after]),
		})
		rest = rest[after:]
	}
	return nodes, nil
}

// memoryOf is about how many bytes the entries take in memory.
func memoryOf(nodes []node) int {
	size := len(nodes) * int(unsafe.Sizeof(node{}))
	for _, n := range nodes {
		size += len(n.raw) + len(n.name)
	}
	return size
}

// compareNodes is git's order of a tree: by bytes, a directory as if its name ended in
// a slash (C24).
func compareNodes(a, b node) int {
	n := min(len(a.name), len(b.name))
	if c := strings.Compare(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	return int(a.byteAt(n)) - int(b.byteAt(n))
}

// byteAt is the byte of the name at a place up to its end, as it is compared.
func (n node) byteAt(i int) byte {
	switch {
	case i < len(n.name):
		return n.name[i]
	case n.isDir():
		return '/'
	}
	return 0
}

// putTree writes a directory of these entries, which may be in any order and stay in it.
func (r *Repository) putTree(nodes []node) (object.ID, error) {
	return r.put(git.ObjectTree, treeContent(inTreeOrder(nodes)))
}

// inTreeOrder are the entries in the order of a tree.
func inTreeOrder(nodes []node) []node {
	if slices.IsSortedFunc(nodes, compareNodes) {
		return nodes
	}
	return slices.SortedFunc(slices.Values(nodes), compareNodes)
}

// treeContent is the content of a tree of these entries.
func treeContent(nodes []node) []byte {
	content := make([]byte, 0, rawSize(nodes))
	for _, n := range nodes {
		content = append(content, n.raw...)
	}
	return content
}

// rawSize is the size of a tree of these entries.
func rawSize(nodes []node) int {
	size := 0
	for _, n := range nodes {
		size += len(n.raw)
	}
	return size
}
