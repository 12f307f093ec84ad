package worktree

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
)

// spot is a name at or above a place where two commits differ.
type spot struct {
	name string
	// from and to are what the commits have at this very place, if it is no directory.
	from, to history.Side
	// below are the spots in the directory, sorted by name.
	below []*spot
	named map[string]*spot
	// losing and gaining tell whether anything below is in the one commit and not in the
	// other, changing whether something is in both and differs.
	losing, gaining, changing bool
}

// maxName is how many bytes a name may have on the file systems that matter.
const maxName = 255

// newSpots orders differences by directory. What cannot be put into a tree is refused and
// left out, of either commit: no tree has it, so that its like in the other one is new, or
// goes. The error is that of names that no commit can mean well with.
func newSpots(differences []history.Difference, source Source) (*spot, []Skip, error) {
	root := &spot{}
	var refused []Skip
	for _, d := range differences {
		fitting, err := fitted(d, source)
		if err != nil {
			return nil, nil, err
		}
		if fitting.To != d.To {
			refused = append(refused, Skip{Path: d.Path, Reason: Name})
		}
		if fitting.From == fitting.To {
			continue
		}
		if err := root.add(fitting); err != nil {
			return nil, nil, err
		}
	}
	root.sort()
	return root, refused, nil
}

// EditsOf is what the memory of one commit lacks to be one of the other. What no tree can
// have is in neither, so its absence is no deletion by the application. The error is one of
// the source, or of names that no commit can mean well with.
func EditsOf(differences []history.Difference, source Source) ([]Edit, error) {
	edits := make([]Edit, 0, len(differences))
	for _, d := range differences {
		to, err := fittedSide(d.Path, d.To, source)
		if err != nil {
			return nil, err
		}
		edits = append(edits, Edit{d.Path, Entry{Mode: to.Mode, Blob: to.ID}})
	}
	return edits, nil
}

// fitted is a difference without what no tree can have.
func fitted(d history.Difference, source Source) (history.Difference, error) {
	var err error
	if d.From, err = fittedSide(d.Path, d.From, source); err == nil {
		d.To, err = fittedSide(d.Path, d.To, source)
	}
	return d, err
}

// fittedSide is what a tree has of what a commit has at a path: nothing, if it cannot be
// in one.
func fittedSide(path string, side history.Side, source Source) (history.Side, error) {
	if fits, err := fits(path, side, source); err != nil || !fits {
		return history.Side{}, err
	}
	return side, nil
}

// fits tells whether what a commit has at a path can be in a tree. A name that some system
// takes for .git is never created, and one of the application's own is nothing that
// upstream could change.
func fits(path string, side history.Side, source Source) (bool, error) {
	names, fits := 0, true
	for name := range strings.SplitSeq(path, "/") {
		if !isName(name) {
			return false, fmt.Errorf("a commit has the path %.200q: %w", path, ErrName)
		}
		names++
		fits = fits && len(name) <= maxName
	}
	if side.Mode == 0 || !fits || names > maxDepth || history.CheckKind(path, side.Mode) != nil {
		return false, nil
	}
	if side.Mode != object.Symlink {
		return true, nil
	}
	destination, err := source.Content(side.ID)
	if err != nil {
		return false, fmt.Errorf("read the link %q of a commit: %w", path, err)
	}
	return len(destination) > 0 && len(destination) <= maxLink && !bytes.Contains(destination, []byte{0}), nil
}

// maxLink is how many bytes the destination of a symbolic link may have.
const maxLink = 4095

// add adds a difference below the root.
func (s *spot) add(d history.Difference) error {
	at := s
	for name := range strings.SplitSeq(d.Path, "/") {
		switch from, to := d.From.Mode != 0, d.To.Mode != 0; {
		case from && to:
			at.changing = true
		case from:
			at.losing = true
		default:
			at.gaining = true
		}
		next := at.named[name]
		if next == nil {
			next = &spot{name: name}
			if at.named == nil {
				at.named = map[string]*spot{}
			}
			at.named[name] = next
			at.below = append(at.below, next)
		}
		at = next
	}
	if at.from != (history.Side{}) || at.to != (history.Side{}) {
		return fmt.Errorf("a commit has the path %.200q twice: %w", d.Path, ErrName)
	}
	at.from, at.to = d.From, d.To
	return nil
}

func (s *spot) sort() {
	slices.SortFunc(s.below, func(a, b *spot) int { return strings.Compare(a.name, b.name) })
	for _, child := range s.below {
		child.sort()
	}
}

// hadDirectory tells whether a directory was there that has a difference in it, and
// hasDirectory whether one will be.
func (s *spot) hadDirectory() bool { return s.losing || s.changing }
func (s *spot) hasDirectory() bool { return s.gaining || s.changing }

// find is the spot at path, nil if there is none.
func (s *spot) find(path string) *spot {
	if path == "." {
		return s
	}
	at := s
	for name := range strings.SplitSeq(path, "/") {
		if at = at.named[name]; at == nil {
			return nil
		}
	}
	return at
}

// each visits what differs at s, which is at path, and below.
func (s *spot) each(path string, visit func(path string, s *spot)) {
	if s.from != (history.Side{}) || s.to != (history.Side{}) {
		visit(path, s)
	}
	for _, child := range s.below {
		child.each(join(path, child.name), visit)
	}
}

// The sides of a spot, for who compares with one of them.
func fromSide(s *spot) history.Side { return s.from }
func toSide(s *spot) history.Side   { return s.to }
