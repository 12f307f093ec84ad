package main

import (
	"runtime"
	"testing"
)

// What was needed for a moment is given back, and nothing is collected for little.
func TestGiveBack(t *testing.T) {
	kept := giveBackOver(0)
	for range 2 {
		bulk := make([]byte, 64<<20)
		for i := 0; i < len(bulk); i += 4096 {
			bulk[i] = 1
		}
		runtime.KeepAlive(bulk)
		before := held()
		if kept = giveBackOver(kept); before-kept < 48<<20 {
			t.Errorf("of %d bytes %d are kept", before, kept)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	giveBackOver(kept)
	if runtime.ReadMemStats(&after); after.NumForcedGC != before.NumForcedGC {
		t.Error("it was collected for nothing")
	}
}
