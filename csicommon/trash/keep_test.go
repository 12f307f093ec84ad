package trash

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

const day = 24 * time.Hour

// keeping is a place whose bin keeps its items for a day, with an item in it.
func keeping(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	p.keep = day
	p.reopen(t)
	p.put(t)
	return p
}

func (p *place) put(t *testing.T) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Join(p.path, "v", "d"), 0o755))
	check(t, p.Bin.Put(p.dir, "v"))
}

// pending lets the time pass and checks what is in the bin then.
func (p *place) pending(t *testing.T, after time.Duration, want int) {
	t.Helper()
	time.Sleep(after)
	synctest.Wait()
	entries, err := os.ReadDir(p.bin)
	check(t, err)
	if len(entries) != want || p.Bin.Pending() != want {
		t.Errorf("%d in the bin and %d pending, want %d", len(entries), p.Bin.Pending(), want)
	}
}

func TestKeepIsTheTimeUntilAnItemGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := keeping(t)
		defer p.run(t)()
		p.pending(t, day-time.Hour, 1)
		p.put(t)
		p.pending(t, 2*time.Hour, 1)
		p.pending(t, day, 0)
	})
}

func TestKeepGoesOnOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := keeping(t)
		p.run(t)()
		time.Sleep(day - time.Hour)
		write(t, filepath.Join(p.bin, "by-hand"), 1)
		p.reopen(t)
		defer p.run(t)()
		p.pending(t, 30*time.Minute, 2)
		p.pending(t, time.Hour, 1) // What was put by hand counts from the restart.
		p.pending(t, day, 0)
	})
}

func TestKeepThatIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := keeping(t)
		p.keep = 0
		p.reopen(t)
		defer p.run(t)()
		p.pending(t, time.Second, 0)
	})
}

// The clock was wrong by ten years when the item was put: it is not kept for these.
func TestKeepAfterTheClockWasPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := keeping(t)
		entries, err := os.ReadDir(p.bin)
		check(t, err)
		later := time.Now().Add(10 * 365 * day)
		check(t, os.Rename(filepath.Join(p.bin, entries[0].Name()), filepath.Join(p.bin, newWrapperAt(later))))
		p.reopen(t)
		defer p.run(t)()
		p.pending(t, day-time.Hour, 1)
		p.pending(t, 2*time.Hour, 0)
	})
}

func TestWhatSomebodyTookOutOfTheBinStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := keeping(t)
		defer p.run(t)()
		at, err := filepath.Glob(p.bin + "/.*/v")
		check(t, err)
		check(t, os.Rename(at[0], filepath.Join(p.path, "v")))
		p.pending(t, 2*day, 0)
		if missing(filepath.Join(p.path, "v", "d")) || len(p.all()) != 0 {
			t.Errorf("it was deleted: %v", p.all())
		}
	})
}
