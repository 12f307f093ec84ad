package published

import (
	"context"
	"errors"
	"time"

	"liken.sh/gitvolume/internal/attributesclass"
	"liken.sh/gitvolume/internal/policy"
	"liken.sh/gitvolume/internal/writeable"
	"liken.sh/gitvolume/internal/written"
)

// classPatience is how long a publish waits for its class. What was in force counts then,
// until the class is known.
const classPatience = 5 * time.Second

// Classes reads VolumeAttributesClasses; *attributesclass.Reader is it.
type Classes interface {
	Read(ctx context.Context, name string) (policy.Class, error)
}

// pokeClasses has the classes be read soon that are due.
func (v *Volumes) pokeClasses() {
	select {
	case v.poked <- struct{}{}:
	default:
	}
}

// runClasses has the classes count that PersistentVolumes name, until ctx ends. One that
// cannot be used, or not be read, is tried again each time.
func (v *Volumes) runClasses(ctx context.Context) {
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.poked:
		case <-again.C:
		}
		for _, vol := range v.all() {
			v.rearm(ctx, vol)
		}
	}
}

// rearm has the class count that the volume's PersistentVolume names, if that is due.
func (v *Volumes) rearm(ctx context.Context, vol *volume) {
	vol.rearming.Lock()
	defer vol.rearming.Unlock()
	w, name, isDue := vol.dueClass()
	if !isDue || v.settings.Classes == nil {
		return
	}
	arming, err := v.armingOf(ctx, name)
	if err != nil {
		// What was in force is, until the API server says otherwise.
		if ctx.Err() == nil {
			v.settings.Log.Warn("a volume's class cannot be read, trying again", "volume", vol.handle, "error", err)
		}
		return
	}
	if err := w.Arm(arming); err != nil {
		v.settings.Log.Warn("the class counts until the driver ends", "volume", vol.handle, "error", err)
	}
	if isUsable(arming) {
		vol.classDone(name)
	}
}

// dueClass is the class that is to be read, and what it is for.
func (vol *volume) dueClass() (w *written.Volume, name string, isDue bool) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	return vol.writer, vol.cluster.class, vol.writer != nil && vol.cluster.isKnown && !vol.classIsDone
}

// classDone notes that nothing is to be done about a class, if it still is the volume's.
func (vol *volume) classDone(name string) {
	vol.mu.Lock()
	defer vol.mu.Unlock()
	vol.classIsDone = vol.cluster.class == name
}

// isUsable tells whether a class arms or pauses a volume, or there is none: then it stays
// so until another is named.
func isUsable(a writeable.Arming) bool {
	return a.Unarmed == nil || a.Class == "" || errors.Is(a.Unarmed, policy.ErrPaused)
}

// armingOf is what the class of a name makes of a volume; empty: there is none.
func (v *Volumes) armingOf(ctx context.Context, name string) (writeable.Arming, error) {
	if name == "" {
		return written.Unarmed(), nil
	}
	class, err := v.settings.Classes.Read(ctx, name)
	switch {
	case errors.Is(err, attributesclass.ErrNone):
		return writeable.Arming{Policy: policy.Default(), Class: name, Unarmed: err}, nil
	case err != nil:
		return writeable.Arming{}, err
	}
	return writeable.ArmingOf(class, v.settings.Driver), nil
}
