package persistentvolume

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// follow is one followed name. The View's mutex guards everything but name and
// telling.
type follow struct {
	name    string
	state   State
	volume  Volume
	failing bool
	stop    context.CancelFunc
	// telling is held while Changed is called.
	telling sync.Mutex
}

// settled is how long an attempt must have lasted to count as working again: a
// proxy that closes each watch at once is slowed down like one that refuses it.
const settled = 10 * time.Second

// pauses are the waits between attempts: from half a second to about half a
// minute, spread so that the nodes of a cluster, and the volumes of a node, do
// not return to a restarted API server in one wave.
func pauses() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 20 * time.Second}
}

// keepTrying makes attempts until ctx ends, with pauses in between, and hands on what went
// wrong.
func keepTrying(ctx context.Context, attempt func() error, failed func(error)) {
	pause := pauses()
	for {
		began := time.Now()
		err := attempt()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			failed(err)
		}
		if time.Since(began) >= settled {
			pause = pauses()
		}
		timer := time.NewTimer(pause.Step())
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// keepFollowing reads and watches f.name again and again until ctx ends.
func (v *View) keepFollowing(ctx context.Context, f *follow) {
	keepTrying(ctx, func() error { return v.attempt(ctx, f) }, func(err error) { v.failed(f, err) })
}

// attempt reads f.name once, then applies what its watch says until that ends.
// A watch that ends as agreed, or because the API server has forgotten the
// version it started from (410), is no error: the next attempt reads again.
func (v *View) attempt(ctx context.Context, f *follow) error {
	var (
		volume  Volume
		present bool
		version string
		err     error
	)
	apart(func() { volume, present, version, err = v.readNamed(ctx, f.name) })
	if err != nil {
		return err
	}
	v.mu.Lock()
	v.succeeded(f)
	v.mu.Unlock()
	v.apply(ctx, f, volume, present)
	return v.watch(ctx, f, version)
}

// apply records an answer about f and reports it when it is news. An answer
// that arrives after Unfollow, or in the last moment of Run, is dropped.
func (v *View) apply(ctx context.Context, f *follow, volume Volume, present bool) {
	state := Absent
	if present {
		state = Present
	}
	v.mu.Lock()
	news := v.follows[f.name] == f && ctx.Err() == nil && (f.state != state || !f.volume.equal(volume))
	if news {
		f.state, f.volume = state, volume
	}
	v.mu.Unlock()
	if news {
		v.tell(f)
	}
}

// tell calls Changed. Whoever is called reads what is known by then.
func (v *View) tell(f *follow) {
	if v.config.Changed == nil {
		return
	}
	f.telling.Lock()
	defer f.telling.Unlock()
	v.config.Changed(f.name)
}

// failed notes that f could not be read or watched. What is known of it stays.
func (v *View) failed(f *follow, err error) {
	v.mu.Lock()
	first := v.failing == 0 && v.follows[f.name] == f
	if !f.failing && v.follows[f.name] == f {
		f.failing = true
		v.failing++
	}
	v.mu.Unlock()
	if first {
		v.config.Log.Warn("cannot watch PersistentVolumes; what is known of them stays", "volume", f.name, "error", err)
		return
	}
	v.config.Log.Debug("cannot watch a PersistentVolume", "volume", f.name, "error", err)
}

// succeeded takes f out of the failing ones; the caller holds v.mu.
func (v *View) succeeded(f *follow) {
	if !f.failing {
		return
	}
	f.failing = false
	v.failing--
	if v.failing == 0 {
		v.config.Log.Info("PersistentVolumes are watched again")
	}
}
