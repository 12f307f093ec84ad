package published

import (
	"context"
	"errors"
	"fmt"

	"liken.sh/csicommon/handle"
	"liken.sh/csicommon/target"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// Unpublish takes a volume off a target. Everything that is gone already is success:
// target, mount, record, tree. A target that is not this driver's is left alone. With the
// last target of a read-only volume, all that the node has of it goes; a tree that was
// written is committed and pushed then, and stays.
func (v *Volumes) Unpublish(ctx context.Context, volume, at string) error {
	path, isNowhere, err := target.Former(at)
	if err != nil {
		return err
	}
	unlock, err := v.handles.Lock(ctx, volume)
	if err != nil {
		return err
	}
	defer unlock()
	record, unread := v.latest(volume)
	if !isNowhere {
		taken, err := v.targets.TakeOff(path, hasTarget(record, path))
		if err != nil {
			return fmt.Errorf("unpublish volume %q: %w", volume, err)
		}
		if !taken {
			v.settings.Log.Warn("a target to unpublish is not this driver's, leaving it", "volume", volume, "target", path)
			return nil
		}
	}
	switch {
	case handle.Check(volume) != nil:
		return nil
	case record.Kind == store.Writeable:
		return v.quitWritten(ctx, record, path)
	case v.hasTree(volume):
		v.settings.Log.Warn("a volume is unpublished whose tree has no record: it stays as it is", "volume", volume)
		return nil
	}
	return v.quit(ctx, volume, record, unread, path)
}

// latest is the record of a volume, that of a writeable one from memory if it is there: what
// its pod wrote is committed whatever became of the record meanwhile.
func (v *Volumes) latest(volume string) (store.Record, error) {
	if vol := v.known(volume); vol != nil {
		vol.mu.Lock()
		defer vol.mu.Unlock()
		if vol.writer != nil {
			return vol.writer.Record(), nil
		}
	}
	return v.recorded(volume)
}

// hasTree tells whether the store has a tree that a pod wrote.
func (v *Volumes) hasTree(volume string) bool {
	_, err := v.settings.Store.Tree(volume)
	return !errors.Is(err, store.ErrNoTree)
}

// recorded is the record of a volume; zero if there is none.
func (v *Volumes) recorded(volume string) (store.Record, error) {
	if handle.Check(volume) != nil {
		return store.Record{}, nil //nolint:nilerr // What can be no handle has none.
	}
	r, err := v.settings.Store.Load(volume)
	if errors.Is(err, store.ErrNoRecord) || errors.Is(err, store.ErrDamagedRecord) {
		r, err = store.Record{}, nil
	}
	return r, err
}

// quit forgets that the volume is at the canonical path, and the volume with the last of
// its targets. The error is why its record is not known. The caller has the handle.
func (v *Volumes) quit(ctx context.Context, volume string, r store.Record, unread error, path string) error {
	vol := v.known(volume)
	var attached attachment
	if vol != nil {
		attached = vol.left(path)
	}
	r.Targets = withoutTarget(r.Targets, path)
	// What the memory has counts for more: the record may be damaged, or have been kept from
	// being written by a full disk.
	var err error
	switch {
	case attached == nil && unread != nil:
		// No pod waits for a record that a later driver wrote, or that a disk does not give.
		v.settings.Log.Warn("the record of a volume that is unpublished stays as it is", "volume", volume, "error", unread)
		return nil
	case attached != nil && vol.isSomewhere():
		err = attached.Save(func(kept *store.Record) { kept.Targets = withoutTarget(kept.Targets, path) })
	case attached == nil && len(r.Targets) > 0:
		err = v.settings.Store.Save(r)
	default:
		return v.detach(ctx, volume, vol)
	}
	if err != nil {
		// No pod waits for that. After a restart the target is found to be gone.
		v.settings.Log.Warn("the record of a volume names a target that it is no longer at", "volume", volume, "target", path, "error", err)
	}
	return nil
}

// detach takes all away that the node has of a volume; vol is nil if there is none.
func (v *Volumes) detach(ctx context.Context, volume string, vol *volume) error {
	// Also of what is only on its way: nobody waits for it any more.
	if err := v.settings.Followers.Detach(ctx, volume); err != nil {
		return err
	}
	if vol != nil {
		v.end(vol)
	}
	return nil
}

func (v *Volumes) known(handle string) *volume {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.volumes[handle]
}

// isSomewhere tells whether the volume has a place.
func (vol *volume) isSomewhere() bool {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	return len(vol.places) > 0
}

// left forgets a place, and gives what the volume is attached by.
func (vol *volume) left(path string) attachment {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	if pod, was := vol.quit(path); was {
		vol.report.RemovePod(report.Pod(pod))
		vol.judgeSecrets()
	}
	for at, w := range vol.waiting {
		if canonical, err := target.Canonical(at); err != nil || canonical == path {
			delete(vol.waiting, at)
			vol.report.RemovePod(report.Pod(w.pod))
		}
	}
	return vol.attachment
}

// end forgets a volume that is detached.
func (v *Volumes) end(vol *volume) {
	v.mu.Lock()
	defer v.mu.Unlock()
	vol.mu.Lock()
	if vol.attachment != nil {
		v.meter.Forget(vol.attachment.Dir()) // One that others show too is measured again.
	}
	vol.attachment = nil
	vol.unbring()
	clear(vol.places)
	clear(vol.waiting)
	vol.mu.Unlock()
	v.forget(vol)
}
