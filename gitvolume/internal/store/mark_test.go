package store

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func (f *fixture) suspects(want map[string]int) {
	f.t.Helper()
	if got := f.store.Suspects(); !maps.Equal(got, want) {
		f.t.Errorf("suspects %v, want %v", got, want)
	}
}

func TestMarksTellOfEndsInARow(t *testing.T) {
	f := newFixture(t)
	f.volume("v")
	f.volume("w")
	ended := f.store.Mark("w")
	ended()
	ended()
	f.suspects(nil)

	f.store.Mark("v") // And the process ends.
	f.restart()
	f.suspects(map[string]int{"v": 1})
	f.restart() // An end without native work counts for nothing.
	f.suspects(map[string]int{"v": 1})
	f.store.Mark("v")
	f.store.Mark("w")
	f.restart()
	f.suspects(map[string]int{"v": 2, "w": 1})

	f.store.Mark("v")()
	f.suspects(map[string]int{"w": 1})
	f.restart()
	f.suspects(map[string]int{"w": 1})
	f.must(f.store.Remove("w"))
	f.suspects(nil)
}

func TestAMarkOfAnyContent(t *testing.T) {
	for text, want := range map[string]int{"": 0, "0": 0, "1": 1, "0 3\n": 3, "1 3\n": 4, "1 12\n": 13, "1 x": 1, "x 1": 1, "0 0\n\n": 0, "\x00\x00": 0} {
		f := newFixture(t)
		f.volume("v")
		f.write(text, volumesDir, "v", markFile)
		for range 2 { // It is counted once.
			f.restart()
			if got := f.store.Suspects()["v"]; got != want {
				t.Errorf("%q: %d, want %d", text, got, want)
			}
		}
		f.store.Mark("v")()
		f.restart()
		f.suspects(nil)
	}
}

func TestAMarkThatCannotBeMadeStopsNothing(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		f.store.Mark("no-such-volume")()
	}
	if n := strings.Count(f.log.String(), "without a mark"); n != 1 {
		t.Errorf("told %d times", n)
	}
	f.volume("v")
	f.must(os.Mkdir(filepath.Join(f.dir, volumesDir, "v", markFile), 0o700))
	f.store.Mark("v")()
	f.restart()
	if !strings.Contains(f.log.String(), "cannot tell whether") {
		t.Errorf("logged %q", f.log)
	}
}

func BenchmarkMark(b *testing.B) {
	s := settings(b.TempDir())
	s.Log = slog.New(slog.DiscardHandler)
	opened, err := Open(s)
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	if err := opened.Save(aRecord("v")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		opened.Mark("v")()
	}
}
