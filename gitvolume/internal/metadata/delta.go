package metadata

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Delta is what one volume changed: the new entry of each path, the zero Entry for a
// path that has none any more.
type Delta map[string]Entry

// Diff is what makes ours out of base.
func Diff(base, ours Record) Delta {
	delta := Delta{}
	old, current := base.lines, ours.lines
	for len(old) > 0 || len(current) > 0 {
		switch order := compareHeads(old, current); {
		case order < 0:
			delta[old[0].path] = Entry{}
			old = old[1:]
		case order > 0:
			delta[current[0].path] = current[0].entry
			current = current[1:]
		default:
			if old[0].entry != current[0].entry {
				delta[current[0].path] = current[0].entry
			}
			old, current = old[1:], current[1:]
		}
	}
	return delta
}

// Apply is the record with the delta's entries over its own, path by path: what a
// volume changed survives, and so does everything it did not change. The cost is
// that of one walk through the record. The error is that of an entry or a path that
// no record can hold.
func (r Record) Apply(delta Delta) (Record, error) {
	changes := make([]line, 0, len(delta))
	for _, path := range slices.Sorted(maps.Keys(delta)) {
		entry := delta[path]
		if entry.IsZero() {
			entry = Entry{}
		} else if err := cmp.Or(entry.check(), checkPath(path, entry.Kind)); err != nil {
			return Record{}, fmt.Errorf("record %.200q: %w", path, err)
		}
		changes = append(changes, line{path, entry})
	}
	lines := make([]line, 0, len(r.lines)+len(changes))
	old := r.lines
	for len(old) > 0 || len(changes) > 0 {
		order := compareHeads(old, changes)
		if order < 0 {
			lines = append(lines, old[0])
		} else if !changes[0].entry.IsZero() {
			lines = append(lines, changes[0])
		}
		if order <= 0 {
			old = old[1:]
		}
		if order >= 0 {
			changes = changes[1:]
		}
	}
	return Record{lines}, nil
}

// compareHeads orders the first lines of two lists of which at least one holds some;
// the end of a list comes after everything.
func compareHeads(a, b []line) int {
	switch {
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return strings.Compare(a[0].path, b[0].path)
}
