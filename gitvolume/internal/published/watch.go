package published

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

const (
	// lookEvery is how often it is asked whether targets are still mounts.
	lookEvery = time.Minute
	// dropEvery is how often records are looked for of which nothing is left.
	dropEvery = 10 * time.Minute
)

// Run commits what a crash left, has the classes count that the cluster names, looks now and then whether targets are still mounts, and
// measures trees that are asked for, until ctx ends.
func (v *Volumes) Run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { v.meter.Run(ctx) })
	beside.Go(func() { v.runClasses(ctx) })
	beside.Go(func() { v.runReclaim(ctx) })
	look, drop := time.NewTicker(lookEvery), time.NewTicker(dropEvery)
	defer look.Stop()
	defer drop.Stop()
	v.keepTrees(ctx)
	v.dropGone(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			v.lookAtTargets(ctx)
		case <-drop.C:
			v.dropGone(ctx)
		}
	}
}

func (v *Volumes) lookAtTargets(ctx context.Context) {
	forgotten := false
	for _, vol := range v.all() {
		v.lookAt(ctx, vol)
		vol.mu.Lock()
		vol.tired(time.Now())
		vol.mu.Unlock()
		if err := v.rest(ctx, vol, time.Now()); err != nil && ctx.Err() == nil {
			v.settings.Log.Warn("a volume that nobody has was not ended", "volume", vol.handle, "error", err)
		}
		v.mu.Lock()
		v.forget(vol)
		forgotten = forgotten || v.volumes[vol.handle] != vol
		v.mu.Unlock()
	}
	if forgotten {
		v.dropGone(ctx) // An arrival may go on, and would report to a volume that is no more.
		v.pokeReclaim() // A tree that a pod waited for is one that nobody needs, perhaps.
	}
}

func (v *Volumes) all() []*volume {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return slices.Collect(maps.Values(v.volumes))
}

// lookAt looks at each target of a volume. One that is no mount any more is mounted again
// by the next publish; one around which everything is gone will not be asked for.
func (v *Volumes) lookAt(ctx context.Context, vol *volume) {
	var lost string
	for _, p := range vol.each() {
		mounted, err := v.settings.Mounts.IsMount(p.path)
		switch {
		case err != nil:
			v.settings.Log.Warn("whether a target is a mount cannot be told", "volume", vol.handle, "target", p.path, "error", err)
			continue
		case !mounted && isGone(p.path):
			if err := v.Unpublish(ctx, vol.handle, p.path); err != nil {
				v.settings.Log.Warn("a target that is gone is not forgotten", "volume", vol.handle, "target", p.path, "error", err)
			}
			continue
		case !mounted:
			lost = p.path
		}
		vol.note(p.path, mounted)
	}
	if lost == "" {
		vol.report.Clear(report.TargetNotMounted)
		return
	}
	vol.report.Raise(report.TargetNotMounted, fmt.Sprintf("nothing is mounted at %q any more; the next publish mounts it again, "+
		"and a pod that ran meanwhile sees it once it is started again", lost))
}

// note notes that a target was no mount. That one is a mount says nothing about what it
// shows: only a publish looks at that.
func (vol *volume) note(path string, mounted bool) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if p := vol.at(path); p != nil && !mounted {
		p.mounted = false
	}
}

// isGone tells whether the directory is gone in which a target would be.
func isGone(path string) bool {
	_, err := os.Lstat(filepath.Dir(path))
	return errors.Is(err, fs.ErrNotExist)
}

// dropGone removes what records say of volumes whose pods went while nobody looked.
func (v *Volumes) dropGone(ctx context.Context) {
	records, _, err := v.settings.Store.All()
	if err != nil {
		v.settings.Log.Warn("records cannot be looked through", "error", err)
		return
	}
	for _, r := range records {
		if r.Kind == store.Writeable {
			continue
		}
		if err := v.drop(ctx, r); err != nil && ctx.Err() == nil {
			v.settings.Log.Warn("a volume whose pods are gone is not forgotten", "volume", r.Handle, "error", err)
		}
	}
}
