// Package ignore answers whether git would ignore an untracked path: the rules of
// .gitignore files and of one list below them all, exactly as git 2.39 reads and
// matches them, corners included. Patterns and names are bytes.
//
// The last pattern that matches decides; a directory's own .gitignore counts more
// than those of the directories above it, and the list of the class (git's
// core.excludesFile) counts least. Nothing below an ignored directory can be taken
// back.
//
// A tracked file stays tracked whatever the patterns say: ask about untracked paths
// alone. A tracked file can lie in an ignored directory, so a caller that looks for
// tracked files has to enter those too; what is untracked there is ignored.
//
// What is a pattern file is for the caller to decide, who must do as git does:
//   - A .gitignore that is a symbolic link is never followed; it, a directory, a
//     FIFO or whatever else is no regular file counts as absent. Nothing but a
//     regular file may be opened for reading: the open of a FIFO hangs.
//   - A .gitignore that cannot be read counts as absent.
//   - One that is itself ignored, or untracked, counts like any other. That of an
//     ignored directory does not.
//   - git 2.39 reads a file of any size, git from 2.46 on none over 100 MiB. Whoever
//     reads files that others write needs a bound: parsed, a file takes up to some
//     thirty times its size in memory (many short patterns), and each name is
//     compared with each wildcard pattern.
//   - Only a real directory is a directory; a symbolic link to one is not.
//
// The package must never read a file system, and no pattern or name may make it
// panic or take more than polynomial time.
package ignore

import (
	"bytes"
	"strings"
)

// Patterns is what one .gitignore file, or the class's list, says. The zero value
// says nothing. It never changes, and may be shared.
type Patterns struct{ list *list }

// Parse reads the content of a .gitignore file. Every content is one: what git
// cannot read as a pattern matches nothing. The content is copied.
func Parse(content []byte) Patterns {
	// git drops one byte order mark at the start of a file, and no other.
	text := string(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))
	return parseLines(text)
}

// FromList reads patterns that come one by one, as the lines of a file: a pattern's
// line is its place in the list, from 1.
func FromList(patterns []string) Patterns {
	return parseLines(strings.Join(patterns, "\n"))
}

func parseLines(text string) Patterns {
	var rules []rule
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if r, ok := parseRule(line, number); ok {
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return Patterns{}
	}
	return Patterns{newList(rules)}
}

// list holds the rules of one file by how they are looked up. Each part is in the
// file's order.
type list struct {
	// names has the rules that are one plain name, at any depth.
	names map[string]named
	// wild are the other rules for a name at any depth.
	wild []*rule
	// anchored are the rules with a place, from the file's directory down.
	anchored []*rule
}

// named are the last of a name's rules: for whatever is no directory, and for a
// directory.
type named struct{ other, directory *rule }

func newList(rules []rule) *list {
	l := &list{names: make(map[string]named)}
	for i := range rules {
		r := &rules[i]
		switch {
		case r.places != nil:
			l.anchored = append(l.anchored, r)
		case r.name.kind == plain:
			n := l.names[r.name.text]
			n.directory = r
			if !r.directory {
				n.other = r
			}
			l.names[r.name.text] = n
		default:
			l.wild = append(l.wild, r)
		}
	}
	return l
}

// find is the last rule that matches a name at any depth, nil if there is none.
func (l *list) find(name string, isDir bool) *rule {
	n := l.names[name]
	best := n.other
	if isDir {
		best = n.directory
	}
	for i := len(l.wild) - 1; i >= 0; i-- {
		r := l.wild[i]
		if r.before(best) {
			break
		}
		if r.takes(isDir) && r.name.matches(name) {
			return r
		}
	}
	return best
}
