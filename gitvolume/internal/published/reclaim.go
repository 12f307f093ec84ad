package published

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/csicommon/persistentvolume"
	"liken.sh/gitvolume/internal/store"
)

const (
	// reclaimEvery is how often trees are looked for of which the PersistentVolume is gone,
	// if nothing tells of one before, and reclaimPause the least time between two looks.
	reclaimEvery = time.Hour
	reclaimPause = time.Second
	// confirmTimeout bounds the complete read of the cluster, and removePatience what comes
	// between the last question about a volume and its removal.
	confirmTimeout = 5 * time.Minute
	removePatience = 30 * time.Second
)

// deletes is the reclaim policy by which a tree goes with its PersistentVolume.
const deletes = "Delete"

// pokeReclaim has reclaim look soon.
func (v *Volumes) pokeReclaim() {
	select {
	case v.reclaimable <- struct{}{}:
	default:
	}
}

// runReclaim removes the trees that their PersistentVolumes left to be deleted, until ctx
// ends.
func (v *Volumes) runReclaim(ctx context.Context) {
	if !v.hasCluster() {
		return
	}
	again := time.NewTicker(reclaimEvery)
	defer again.Stop()
	for {
		if err := v.reclaim(ctx); err != nil && ctx.Err() == nil {
			v.settings.Log.Warn("which trees are to be removed is not known, all are kept", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reclaimPause):
		}
		select {
		case <-ctx.Done():
			return
		case <-v.reclaimable:
		case <-again.C:
		}
	}
}

// reclaim looks once at every tree that nobody has. The API server is asked nothing while
// each of them is named, as far as is known here.
func (v *Volumes) reclaim(ctx context.Context) error {
	records, _, err := v.settings.Store.All()
	if err != nil {
		return err
	}
	var unnamed []store.Record
	resting := map[string]bool{}
	for _, r := range records {
		if r.Kind != store.Writeable || v.known(r.Handle) != nil {
			continue // What is in memory is followed by its volume.
		}
		resting[nameOf(r)] = true
		v.follows.add(nameOf(r), followedByReclaim)
		switch info, state := v.settings.Cluster.Get(nameOf(r)); {
		case state == persistentvolume.Present && v.isNamedBy(r.Handle, info):
			v.keepPolicy(ctx, info)
		case state != persistentvolume.Unknown && v.isUnneeded(r):
			unnamed = append(unnamed, r)
		}
	}
	v.follows.keep(followedByReclaim, resting)
	if len(unnamed) == 0 {
		return nil
	}
	return v.removeUnnamed(ctx, unnamed)
}

// nameOf is the PersistentVolume that a record names; by custom it has the handle's name.
func nameOf(r store.Record) string {
	if r.PV == "" {
		return r.Handle
	}
	return r.PV
}

func (v *Volumes) isNamedBy(handle string, info persistentvolume.Volume) bool {
	return info.Driver == v.settings.Driver && info.Handle == handle
}

// isUnneeded tells whether a record is of a tree that goes with its PersistentVolume: by the
// policy that this node saw last, or because nothing was ever made of it.
func (v *Volumes) isUnneeded(r store.Record) bool {
	if r.Staged || len(r.Targets) > 0 && v.anyMounted(r) {
		return false
	}
	return r.Reclaim == deletes || r.Position == (store.Position{}) && !v.hasTree(r.Handle)
}

// keepPolicy records another reclaim policy of a volume that nobody has, or says why not.
func (v *Volumes) keepPolicy(ctx context.Context, info persistentvolume.Volume) {
	if err := v.savePolicy(ctx, info.Handle, info.ReclaimPolicy); err != nil {
		v.policyNotKept(info.Handle, err)
	}
}

func (v *Volumes) policyNotKept(handle string, err error) {
	v.settings.Log.Warn("a volume's reclaim policy is not kept", "volume", handle, "error", err)
}

func (v *Volumes) savePolicy(ctx context.Context, handle, policy string) error {
	unlock, err := v.handles.Lock(ctx, handle)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := v.recorded(handle)
	if err != nil || r.Kind != store.Writeable || r.Reclaim == policy || v.known(handle) != nil {
		return err
	}
	r.Reclaim = policy
	return v.settings.Store.Save(r)
}

// removeUnnamed removes those of the trees that a complete live read of the store's own
// cluster does not name.
func (v *Volumes) removeUnnamed(ctx context.Context, candidates []store.Record) error {
	cluster, err := v.settings.Store.Cluster()
	if err != nil {
		return err
	}
	reading, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	volumes, err := v.settings.Cluster.Confirm(reading, cluster, v.settings.Driver)
	if err != nil {
		return fmt.Errorf("confirm that %d volumes are gone from the cluster: %w", len(candidates), err)
	}
	named := map[string]bool{}
	for _, info := range volumes {
		named[info.Handle] = true
	}
	var errs []error
	for _, r := range candidates {
		if !named[r.Handle] {
			errs = append(errs, v.remove(ctx, r))
		}
	}
	return errors.Join(errs...)
}

// remove removes one tree, unless its PersistentVolume or a pod came back. The API server
// is not asked while the volume is locked.
func (v *Volumes) remove(ctx context.Context, r store.Record) error {
	ctx, cancel := context.WithTimeout(ctx, removePatience)
	defer cancel()
	info, exists, err := v.settings.Cluster.Read(ctx, nameOf(r))
	if err != nil || exists && v.isNamedBy(r.Handle, info) {
		return err
	}
	unlock, err := v.handles.Lock(ctx, r.Handle)
	if err != nil {
		return err
	}
	defer unlock()
	now, err := v.recorded(r.Handle)
	if err != nil || now.Kind != store.Writeable || v.known(r.Handle) != nil || !v.isUnneeded(now) {
		return err
	}
	v.settings.Log.Info("removing a volume whose PersistentVolume is gone", "volume", r.Handle, "repo", r.URL.Repo(), "policy", now.Reclaim)
	return v.settings.Store.Remove(r.Handle)
}
