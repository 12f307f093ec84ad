package metadata

import (
	"fmt"
	"strings"
	"testing"
)

// TestFits has the largest record that fits, and one with a byte more, which is the one
// that is not read either.
func TestFits(t *testing.T) {
	// pad is a path whose line makes a record larger by so many bytes.
	line := len(record(t, Delta{"a": {Kind: Empty}}).Format()) - len(Record{}.Format()) - 1
	pad := func(size int) string { return fmt.Sprintf("%0*d", size-line, size) }
	entries := Delta{}
	left := MaxSize - len(Record{}.Format())
	for size := MaxPath; left > 2*MaxPath; size-- {
		entries[pad(size)] = Entry{Kind: Empty}
		left -= size
	}
	half := left / 2
	entries["x"+pad(half)[1:]] = Entry{Kind: Empty}
	entries["y"+pad(left - half)[1:]] = Entry{Kind: Empty}
	fits := record(t, entries)
	if text := fits.Format(); len(text) != MaxSize || !fits.Fits() {
		t.Errorf("that one of %d bytes fits is %t", len(text), fits.Fits())
	}
	entries["y"+pad(left - half)[1:]+"y"] = Entry{Kind: Empty}
	delete(entries, "y"+pad(left - half)[1:])
	tooLarge := record(t, entries)
	if tooLarge.Fits() {
		t.Error("one that is a byte too large fits")
	}
	if _, err := Parse([]byte(strings.Repeat("\n", MaxSize+1))); err == nil {
		t.Error("one that is a byte too large is read")
	}
}
