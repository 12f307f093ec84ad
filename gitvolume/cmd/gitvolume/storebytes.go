package main

import (
	"context"
	"os"
	"sync"
	"time"

	"liken.sh/csicommon/usage"
)

const (
	// measureEvery is how often the store is measured, unless that takes so long that the
	// meter does it more rarely.
	measureEvery = 10 * time.Minute
	// wholeStore is what the meter calls the store.
	wholeStore = "store"
)

func (n *node) openMeter() {
	n.meter = usage.NewMeter(usage.Config{
		Open: func(string) (*os.File, error) { return os.Open(n.store.Dir()) },
		Log:  n.Log,
	})
}

// storeBytes is how much the store takes, as last measured.
func (n *node) storeBytes() (bytes int64, known bool) {
	used, _, known := n.meter.Last(wholeStore)
	return used.Bytes, known
}

// keepMeasured measures the store now and then, until ctx ends.
func (n *node) keepMeasured(ctx context.Context) {
	var measuring sync.WaitGroup
	defer measuring.Wait()
	measuring.Go(func() { n.meter.Run(ctx) })
	ticker := time.NewTicker(measureEvery)
	defer ticker.Stop()
	for {
		n.meter.Touch(wholeStore)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
