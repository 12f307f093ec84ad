package trash

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whatever lies in a bin has a time and a name that were its own, and none that is longer.
func FuzzEntry(f *testing.F) {
	f.Add(newWrapper(), "volume", int64(1))
	f.Add(bareName("volume"), "v", time.Now().UnixNano())
	f.Add(".", "", int64(0))
	f.Add(".9999999999999999999-ABCDEFGHIJKLMNOPQRSTUVWXYZ-", "..", int64(1<<62))
	f.Fuzz(func(t *testing.T, entry, name string, nanoseconds int64) {
		if was := original(entry); len(was) > len(entry) {
			t.Errorf("%q was %q", entry, was)
		}
		if _, known := putAt(entry); known && !isStamped(entry) {
			t.Errorf("%q has a time and no stamp", entry)
		}
		if bare := bareName(name); len(bare) > unix.NAME_MAX || isWrapper(bare) || len(bare) < unix.NAME_MAX && original(bare) != name {
			t.Errorf("%q is put as %q, which was %q", name, bare, original(bare))
		}
		if nanoseconds < 1_000_000_000_000_000_000 {
			return // Before 2001.
		}
		wrapper := newWrapperAt(time.Unix(0, nanoseconds))
		if at, known := putAt(wrapper); !isWrapper(wrapper) || !known || at.UnixNano() != nanoseconds {
			t.Errorf("%q is of %v, want %d", wrapper, at, nanoseconds)
		}
	})
}
