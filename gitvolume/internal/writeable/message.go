package writeable

import (
	"fmt"
	"strconv"
	"strings"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/worktree"
)

// mostLines is how many paths a message names.
const mostLines = 100

// message is what a commit says: how many paths it changes and which, and whose it is.
// The trailer is how another node knows a side branch for its own.
func (v *Volume) message(result *worktree.Result) string {
	var text strings.Builder
	if changes := result.Changes; len(changes) == 1 {
		fmt.Fprintf(&text, "Update %s\n\n", printable(changes[0].Path))
	} else {
		fmt.Fprintf(&text, "Update %d paths\n\n", len(changes))
	}
	for _, line := range v.lines(result.Changes) {
		text.WriteString(line + "\n")
	}
	fmt.Fprintf(&text, "\n%s%s\n", trailer, v.Owner)
	return text.String()
}

// lines name changes, one a line, up to a bound.
func (v *Volume) lines(changes []history.Change) []string {
	lines := make([]string, 0, min(len(changes), mostLines+1))
	for i, change := range changes {
		if i == mostLines {
			return append(lines, fmt.Sprintf("and %d more", len(changes)-i))
		}
		letter := "A"
		switch {
		case change.Mode == 0:
			letter = "D"
		case v.memory.Entry(change.Path).Mode != 0:
			letter = "M"
		}
		lines = append(lines, letter+" "+printable(change.Path))
	}
	return lines
}

const trailer = "Volume: "

// isOwn tells whether a message is of a commit of this volume.
func (v *Volume) isOwn(message string) bool {
	for line := range strings.Lines(message) {
		if strings.TrimRight(line, "\n") == trailer+v.Owner {
			return true
		}
	}
	return false
}

// printable is a path in a message: quoted where it would be taken for something else, as
// one with a newline, which could write a trailer.
func printable(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}
