package published

import (
	"context"

	"liken.sh/gitvolume/internal/report"
)

// LookAtTargets is what Run does each minute.
func (v *Volumes) LookAtTargets(ctx context.Context) { v.lookAtTargets(ctx) }

// DropGone is what Run does at its start.
func (v *Volumes) DropGone(ctx context.Context) { v.dropGone(ctx) }

// Holds tells whether anything of a volume is in memory.
func (v *Volumes) Holds(handle string) bool { return v.known(handle) != nil }

// PokeClasses is what Run does each minute about classes.
func (v *Volumes) PokeClasses() { v.pokeClasses() }

// Reclaim is what Run does at its start, hourly, and when a PersistentVolume changes.
func (v *Volumes) Reclaim(ctx context.Context) error { return v.reclaim(ctx) }

// ReclaimIsDue tells, once, whether something asked Run for a Reclaim.
func (v *Volumes) ReclaimIsDue() bool {
	select {
	case <-v.reclaimable:
		return true
	default:
		return false
	}
}

// Tire has the pods that wait do so for as long as they are remembered.
func (v *Volumes) Tire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, vol := range v.volumes {
		vol.mu.Lock()
		for at, w := range vol.waiting {
			w.since = w.since.Add(-lingering)
			vol.waiting[at] = w
		}
		vol.mu.Unlock()
	}
}

// RefuseLate is what Publish does with an error of work that began before others succeeded.
func (v *Volumes) RefuseLate(p Publication, err error, meanwhile func()) {
	vol := v.enter(p)
	defer v.exit(vol)
	fetched := vol.report.Ends(report.FetchFailed)
	meanwhile()
	v.refuse(vol, p, err, fetched)
}

// Fetched is what a fetch of a volume says that succeeded.
func (v *Volumes) Fetched(handle string) { v.known(handle).report.Clear(report.FetchFailed) }
