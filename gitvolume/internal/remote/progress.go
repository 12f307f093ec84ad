package remote

import (
	"bytes"
	"fmt"
	"strconv"
)

// Progress is how far a run is, for people.
type Progress struct {
	// Phase is git's name of what it does, such as "Receiving objects".
	Phase string
	// Percent is of this phase.
	Percent int
	// Bytes came from the remote so far.
	Bytes int64
}

// String is one phrase.
func (p Progress) String() string {
	if p.Phase == "" {
		return fmt.Sprintf("%d bytes received", p.Bytes)
	}
	return fmt.Sprintf("%s, %d %%, %d bytes received", p.Phase, p.Percent, p.Bytes)
}

// parseProgress reads one line of git's progress: "Receiving objects:  45% (9/20), 1.2
// MiB". What a server says of its own has "remote: " before it. It is found out by its
// form, for any phase.
func parseProgress(line []byte) (Progress, bool) {
	line = bytes.TrimPrefix(line, []byte("remote: "))
	phase, rest, found := bytes.Cut(line, []byte(":"))
	// A verdict of git begins with a small letter.
	if !found || len(phase) == 0 || len(phase) > 40 || phase[0] < 'A' || phase[0] > 'Z' {
		return Progress{}, false
	}
	for _, c := range phase {
		if c != ' ' && (c < 'A' || c > 'z' || c > 'Z' && c < 'a') {
			return Progress{}, false
		}
	}
	number, rest, found := bytes.Cut(bytes.TrimLeft(rest, " "), []byte("%"))
	if !found {
		// "Enumerating objects: 20, done." has no share to tell, and is no verdict either.
		count, _, _ := bytes.Cut(number, []byte(","))
		_, err := strconv.ParseUint(string(count), 10, 63)
		return Progress{Phase: string(phase)}, err == nil
	}
	percent, err := strconv.ParseUint(string(number), 10, 7)
	if err != nil || percent > 100 || !bytes.HasPrefix(rest, []byte(" (")) {
		return Progress{}, false
	}
	return Progress{Phase: string(phase), Percent: int(percent)}, true
}
