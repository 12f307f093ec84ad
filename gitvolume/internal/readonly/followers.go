package readonly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"liken.sh/csicommon/keyedmutex"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// ErrOther says that a volume of the handle is attached, and is another.
var ErrOther = errors.New("a volume of this handle is attached that follows something else")

// ErrNoCheckout says that nothing is shown of a volume: it was not attached to its end.
var ErrNoCheckout = errors.New("the volume has no checkout")

// Settings are what Followers need. IsShown, Demanded and Jitter alone may be nil.
type Settings struct {
	Store *store.Store
	// Connect makes the Remote of a credential. It must not wait.
	Connect func(Asked) Remote
	// IsShown tells whether the tree at a path is mounted: pods may see one of which the
	// record was lost.
	IsShown func(dir string) (bool, error)
	// Slots bound background work, that of Fetches too.
	Slots *remote.Slots
	// Key makes digests of credentials. As long as the store is the same, so is the key:
	// with another one nothing of the store is shown before it was fetched again.
	Key []byte
	// DemandEvery is the least time between two demanded pulls of a repository.
	DemandEvery time.Duration
	// Demanded is called for each pull that somebody demanded.
	Demanded func()
	// Jitter gives numbers from 0 to 1, by which loops differ; nil: none.
	Jitter func() float64
	Log    *slog.Logger
}

// Followers are the read-only volumes of a node. They may be used by many goroutines; of
// one volume, Attach, Resume and Detach wait for each other.
type Followers struct {
	settings Settings
	ctx      context.Context // Work outlives the calls that ask for it.
	stop     context.CancelFunc
	workers  sync.WaitGroup

	handles keyedmutex.Mutex // Who attaches or detaches a volume.
	trees   keyedmutex.Mutex // Who changes a checkout.

	// mu is never held while anything waits. It is taken before Attachment.recordMu.
	mu        sync.Mutex
	attached  map[string]*Attachment // By handle.
	arrivals  map[string]*arrival    // By handle.
	checkouts map[string]*checkout   // By key.
	followers map[string]*follower   // By the repository's directory.
}

// New removes the checkouts that no volume's record names and no pod sees: a crash left
// them. Nothing is followed yet. Close ends all of it.
func New(settings Settings) (*Followers, error) {
	f := &Followers{
		settings: settings,
		attached: map[string]*Attachment{}, arrivals: map[string]*arrival{},
		checkouts: map[string]*checkout{}, followers: map[string]*follower{},
	}
	f.ctx, f.stop = context.WithCancel(context.Background())
	if err := f.sweep(); err != nil {
		return nil, fmt.Errorf("follow read-only volumes: %w", err)
	}
	return f, nil
}

// Close ends all loops and waits for them. Trees and records stay as they are.
func (f *Followers) Close() {
	f.mu.Lock()
	f.stop() // No other work begins from here on.
	f.mu.Unlock()
	f.workers.Wait()
}

// work does something that outlives the call, unless Close was called. The caller holds mu.
func (f *Followers) work(do func()) {
	if f.ctx.Err() == nil {
		f.workers.Go(do)
	}
}

func (f *Followers) sweep() error {
	named, known, err := f.named()
	if err != nil || !known {
		return err
	}
	keys, err := f.settings.Store.Checkouts()
	if err != nil {
		return err
	}
	for _, key := range keys {
		if named[key] == 0 {
			err = errors.Join(err, f.remove(key))
		}
	}
	return err
}

// named is how many records name each checkout, and whether all records are known.
func (f *Followers) named() (keys map[string]int, known bool, err error) {
	records, problems, err := f.settings.Store.All()
	if err != nil {
		return nil, false, err
	}
	keys = map[string]int{}
	for _, r := range records {
		if r.Reading != nil {
			keys[r.Reading.Checkout]++
		}
	}
	return keys, len(problems) == 0, nil
}

// Detach ends all that there is of a volume. Nothing of it is mounted any more. That there
// is nothing is no error; after an error it may be called again.
func (f *Followers) Detach(ctx context.Context, handle string) error {
	f.abandon(handle)
	unlock, err := f.handles.Lock(ctx, handle)
	if err != nil {
		return fmt.Errorf("detach volume %q: %w", handle, err)
	}
	defer unlock()
	f.abandon(handle)
	var key string
	if r, err := f.settings.Store.Load(handle); err == nil && r.Reading != nil {
		key = r.Reading.Checkout
	}
	f.leave(handle)
	err = f.settings.Store.Remove(handle)
	if err == nil && key != "" {
		err = f.drop(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("detach volume %q: %w", handle, err)
	}
	return nil
}

// leave takes the volume out of its loop and its checkout.
func (f *Followers) leave(handle string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.attached[handle]
	if a == nil {
		return
	}
	a.end()
	delete(f.attached, handle)
	f.release(a.checkout, a)
	a.follower.leave(a)
}

// drop removes a checkout that nobody shows.
func (f *Followers) drop(ctx context.Context, key string) error {
	unlock, err := f.trees.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	f.mu.Lock()
	used := f.checkouts[key] != nil
	f.mu.Unlock()
	if used {
		return nil
	}
	// One that was not resumed counts too, and one whose record cannot be read may.
	if named, known, err := f.named(); err != nil || !known || named[key] > 0 {
		return err
	}
	return f.remove(key)
}

// remove removes a checkout that no record names, unless pods see it all the same: when
// they do no more, the next start does it.
func (f *Followers) remove(key string) error {
	if f.settings.IsShown != nil {
		shown, err := f.settings.IsShown(f.dir(key))
		if shown || err != nil {
			f.settings.Log.Warn("a checkout stays although no record names it, because pods may see it", "checkout", key, "error", err)
			return nil
		}
	}
	return f.settings.Store.RemoveCheckout(key)
}
