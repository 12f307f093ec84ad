package published

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/written"
)

// errLeaving is what becomes of a call that Leave ends.
var errLeaving = fmt.Errorf("%w: the driver is ending, and goes on with it when it is back", ErrTooEarly)

// Leave has calls return that stage or publish a volume: each may wait for a remote for
// longer than the process has, and all that pods wrote is committed after the last call. Those
// that take a volume away go on: they wait for no more than their push.
func (v *Volumes) Leave() { v.leave() }

// untilLeave is a context that ends with ctx and with Leave.
func (v *Volumes) untilLeave(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(v.leaving, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// orLeaving is the error of a call, or that it was to end.
func (v *Volumes) orLeaving(err error) error {
	if v.leaving.Err() != nil && errors.Is(err, context.Canceled) {
		return errLeaving
	}
	return err
}

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
