package object_test

import (
	"strings"
	"testing"

	"liken.sh/gitvolume/internal/object"
)

// An id that is read is written as it was.
func FuzzParse(f *testing.F) {
	f.Add(strings.Repeat("0", 40))
	f.Add(strings.Repeat("aF", 20))
	f.Add(strings.Repeat("a", 64))
	f.Add("\xff")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := object.Parse(text)
		if err != nil {
			if !id.IsZero() {
				t.Errorf("%q is no id, and %s", text, id)
			}
			return
		}
		if id.String() != text {
			t.Errorf("%q is %s", text, id)
		}
		written, err := id.MarshalText()
		var again object.ID
		if err != nil || again.UnmarshalText(written) != nil || again != id {
			t.Errorf("%q is written as %q", text, written)
		}
	})
}
