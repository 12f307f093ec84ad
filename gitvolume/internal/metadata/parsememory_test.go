package metadata

import (
	"errors"
	"runtime"
	"strings"
	"testing"
)

// TestParseReservesLittle: what is small where it is stored, such as a text of line breaks
// alone, must not take memory for an entry a line before one of them is read.
func TestParseReservesLittle(t *testing.T) {
	text := []byte(header + "\n" + strings.Repeat("\n", 8<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Parse(text)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, ErrBroken) || took > 32<<20 {
		t.Errorf("it takes %d bytes, %v", took, err)
	}
}
