package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// giveBackEvery is how often memory is looked for that can be given back, and
	// worthGivingBack how much it has to be: to collect costs more, the more is in use.
	giveBackEvery   = time.Minute
	worthGivingBack = 16 << 20
)

// giveBack gives memory back that is not needed any more, until ctx ends. A look at all of a
// tree takes several times of what stays in memory, and a start has that of all volumes at
// once; Go's collector gives it back by itself only after minutes, and not all of it.
func giveBack(ctx context.Context) {
	ticker := time.NewTicker(giveBackEvery)
	defer ticker.Stop()
	kept := uint64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			kept = giveBackOver(kept)
		}
	}
}

// giveBackOver gives back what is worth it beyond what was kept the last time, and tells how
// much is kept now.
func giveBackOver(kept uint64) uint64 {
	if held() < kept+worthGivingBack {
		return kept
	}
	debug.FreeOSMemory()
	return held()
}

// held is the memory of Go's heap that the machine cannot use otherwise, in bytes.
func held() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys - m.HeapReleased
}
