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
	f.store.Mark("w")()
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

func TestAMarkThatCannotBeMadeStopsNothing(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		f.store.Mark("no-such-volume")()
	}
	if n := strings.Count(f.log.String(), "without a mark"); n != 1 {
		t.Errorf("told %d times", n)
	}
	f.volume("v")
	f.must(os.Mkdir(filepath.Join(f.dir, volumesDir, "v", suspectFile), 0o700))
	f.store.Mark("v")
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
