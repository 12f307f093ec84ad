package published

import (
	"context"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/written"
)

// endings is how many volumes are ended at a time: each commits, and runs a git that pushes.
const endings = 8

// End is the last of all calls, before the process ends: what pods wrote is committed, and
// pushed once, for which all volumes have the time together that one has at its stop. Pods
// write on, and mounts and records stay for the next process.
func (v *Volumes) End(ctx context.Context) {
	deadline := time.Now().Add(v.settings.Written.StopPush())
	slots := make(chan struct{}, endings)
	var group sync.WaitGroup
	for _, vol := range v.all() {
		vol.mu.Lock()
		w := vol.writer
		vol.mu.Unlock()
		if w == nil {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			v.endOne(ctx, vol, w, max(0, time.Until(deadline)))
		})
	}
	group.Wait()
}

func (v *Volumes) endOne(ctx context.Context, vol *volume, w *written.Volume, within time.Duration) {
	if err := w.End(ctx, within); err != nil {
		v.settings.Log.Error("what was written last is committed at the next start", "volume", vol.handle, "error", err)
	}
}
