// Package metadata is the record of what git cannot keep of one branch's tree: the
// modes, owners and groups that differ from those of a fresh checkout, and the
// empty directories. It reads and writes the record as text, and puts one volume's
// own changes over a record that another volume wrote meanwhile.
//
// It must never touch a disk or a repository: who wrote a record is not known here,
// so a path of it is only checked for its form. Whoever replays it must not follow
// links, and must look whether git can hold the name of an empty directory.
package metadata

import (
	"iter"
	"slices"
	"strings"
)

// Record is what one branch's tree has beyond a fresh checkout. It is immutable; the
// zero Record holds nothing.
type Record struct {
	// lines are sorted by path, bytewise, each path once.
	lines []line
}

type line struct {
	path  string
	entry Entry
}

// Len is the number of paths with an entry.
func (r Record) Len() int { return len(r.lines) }

// Entry is the entry of path; the zero Entry when there is none.
func (r Record) Entry(path string) Entry {
	at, found := slices.BinarySearchFunc(r.lines, path, line.compare)
	if !found {
		return Entry{}
	}
	return r.lines[at].entry
}

// All gives the entries in the order of their paths' bytes.
func (r Record) All() iter.Seq2[string, Entry] {
	return func(yield func(string, Entry) bool) {
		for _, l := range r.lines {
			if !yield(l.path, l.entry) {
				return
			}
		}
	}
}

// Equal tells whether both hold the same entries.
func (r Record) Equal(other Record) bool { return slices.Equal(r.lines, other.lines) }

func (l line) compare(path string) int { return strings.Compare(l.path, path) }
