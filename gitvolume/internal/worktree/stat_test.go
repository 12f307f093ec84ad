package worktree

import (
	"testing"
	"time"
)

func TestRacy(t *testing.T) {
	read := time.Unix(1_700_000_000, 500)
	at := func(d time.Duration) int64 { return read.Add(d).UnixNano() }
	for _, row := range []struct {
		name              string
		modified, changed time.Duration
		want              bool
	}{
		{"both old", -time.Hour, -time.Hour, false},
		{"written just before it was read", -time.Millisecond, -time.Millisecond, true},
		{"time set back, as with touch -r", -time.Hour, -time.Millisecond, true},
		{"time set to the future", time.Hour, -time.Hour, true},
		{"the clock went back since it was written", time.Hour, time.Hour, true},
		{"on FAT, in the same two seconds", -1900 * time.Millisecond, -1900 * time.Millisecond, true},
		{"just settled", -granularity - 1, -granularity - 1, false},
	} {
		if got := (Stat{Modified: at(row.modified), Changed: at(row.changed)}).Racy(read); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
}

// TestTheClockMayGoBack has what is remembered come from a time that is not yet.
func TestTheClockMayGoBack(t *testing.T) {
	v := newVolume(t)
	v.write("f", "1")
	v.commit()
	e := v.memory.Entry("f")
	e.Racy = false
	e.Stat.Modified, e.Stat.Changed = e.Stat.Modified+int64(time.Hour), e.Stat.Changed+int64(time.Hour)
	v.memory = v.memory.With([]Edit{{"f", e}})
	v.write("f", "2")
	v.wantsChanges(v.commit(), "f")
}
