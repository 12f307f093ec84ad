package readonly

import (
	"context"
	"errors"
	"fmt"
	"time"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// answerBefore is how long before its deadline a waiting call is answered, so that the
// answer still reaches who asked.
const answerBefore = 10 * time.Second

// arrival is a volume on its way to be attached. It belongs to the volume and not to the
// call that asked for it.
type arrival struct {
	volume Volume
	scope  scope
	cancel context.CancelFunc

	done       chan struct{}
	attachment *Attachment
	err        error

	// progress is that of the fetch that runs; nil: none does. It is Followers.mu's.
	progress func(ctx context.Context) error
}

// Attach fetches what the volume is to show, or does as its offline says, and has it
// followed until Detach. When ctx has a deadline and 10 s are left of it, the error is
// remote.ErrInProgress; the work goes on, and the next call joins it. Other errors name
// the reason why the volume is refused. A volume that is attached is shown again only to
// who has the credential that it was attached with, or another one that is let in too.
func (f *Followers) Attach(ctx context.Context, v Volume) (*Attachment, error) {
	// Nobody but the webhooks reads it, and a record does not have it.
	v.Attributes.WebhookSecret = ""
	arriving, err := f.arriving(v)
	var a *Attachment
	if err == nil {
		a, err = f.await(ctx, arriving)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && f.ctx.Err() == nil {
		err = fmt.Errorf("%w: another call took its place", remote.ErrInProgress)
	}
	if err != nil {
		return nil, fmt.Errorf("attach volume %q: %w", v.handle(), err)
	}
	a.TakeCredential(v.Credential)
	return a, nil
}

// arriving is the arrival of the volume, which it begins if there is none.
func (f *Followers) arriving(v Volume) (*arrival, error) {
	s := f.scopeOf(v, v.Credential)
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.attached[v.handle()]; a != nil && a.attributes != v.Attributes {
		return nil, fmt.Errorf("%w: %s of %q", ErrOther, a.attributes.Ref, a.attributes.URL.Repo())
	}
	if other := f.arrivals[v.handle()]; other != nil {
		if other.scope == s && other.volume.Attributes == v.Attributes {
			return other, nil
		}
		other.cancel()
	}
	ctx, cancel := context.WithCancel(f.ctx)
	begun := &arrival{volume: v, scope: s, cancel: cancel, done: make(chan struct{})}
	f.arrivals[v.handle()] = begun
	f.work(func() {
		defer cancel()
		begun.attachment, begun.err = f.arrive(ctx, begun)
		close(begun.done)
	})
	return begun, nil
}

// abandon ends the arrival of a volume.
func (f *Followers) abandon(handle string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.arrivals[handle]; a != nil {
		a.cancel()
		delete(f.arrivals, handle)
	}
}

// await waits for the arrival as long as the caller can. One that ended is kept until
// somebody was told how.
func (f *Followers) await(ctx context.Context, a *arrival) (*Attachment, error) {
	var late <-chan time.Time
	if deadline, has := ctx.Deadline(); has {
		timer := time.NewTimer(time.Until(deadline) - answerBefore)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-a.done:
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.arrivals[a.volume.handle()] == a {
			delete(f.arrivals, a.volume.handle())
		}
		return a.attachment, a.err
	case <-f.ctx.Done():
		return nil, f.ctx.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late:
		return nil, f.howFar(ctx, a)
	}
}

// howFar says how far the arrival is.
func (f *Followers) howFar(ctx context.Context, a *arrival) error {
	f.mu.Lock()
	progress := a.progress
	f.mu.Unlock()
	if progress != nil {
		if err := progress(ctx); errors.Is(err, remote.ErrInProgress) {
			return err
		}
	}
	return fmt.Errorf("%w: the remote is asked, or the files are written", remote.ErrInProgress)
}

// arrive attaches the volume. What was kept of it stays when that fails.
func (f *Followers) arrive(ctx context.Context, r *arrival) (*Attachment, error) {
	v := r.volume
	unlock, err := f.handles.Lock(ctx, v.handle())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if a := f.attachedAs(v.handle()); a != nil {
		return a, f.prove(ctx, r, a)
	}
	before, err := f.load(ctx, v)
	if err != nil {
		return nil, err
	}
	a, err := f.begin(ctx, r, before)
	if err != nil && before.Reading == nil && !errors.Is(err, context.Canceled) {
		err = errors.Join(err, f.settings.Store.Remove(v.handle()))
	}
	return a, err
}

// begin attaches a volume that has a record.
func (f *Followers) begin(ctx context.Context, r *arrival, before store.Record) (*Attachment, error) {
	if before.Reading == nil { // One that was here before starts also where new ones do not.
		if err := f.settings.Store.CheckFree(); err != nil {
			return nil, err
		}
	}
	start, err := f.first(ctx, r, before)
	if err != nil {
		return nil, err
	}
	return f.settle(ctx, r, before, start)
}

func (f *Followers) attachedAs(handle string) *Attachment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.attached[handle]
}

// load is the record of the volume, with what it showed if it followed the same.
func (f *Followers) load(ctx context.Context, v Volume) (store.Record, error) {
	next := v.record()
	kept, err := f.settings.Store.Load(v.handle())
	switch {
	case errors.Is(err, store.ErrNoRecord), errors.Is(err, store.ErrDamagedRecord):
	case err != nil:
		return store.Record{}, err
	case v.isOf(kept) && kept.Reading != nil:
		next.Reading = kept.Reading
		return next, nil
	}
	// Before anything of it is fetched: it keeps that from being tidied away.
	if err := f.settings.Store.Save(next); err != nil {
		return store.Record{}, err
	}
	if kept.Reading != nil {
		return next, f.drop(ctx, kept.Reading.Checkout)
	}
	return next, nil
}

// prove returns nil when the arrival's credential may be shown what the attachment shows.
func (f *Followers) prove(ctx context.Context, r *arrival, a *Attachment) error {
	f.mu.Lock()
	proven := a.proven == r.scope && !a.refused
	f.mu.Unlock()
	if proven {
		return nil
	}
	_, err := f.ask(ctx, r)
	return err
}

// ask has the store have the volume's ref as the remote has it, while somebody waits for it.
func (f *Followers) ask(ctx context.Context, r *arrival) (sight, error) {
	v := r.volume
	s := f.sourceOf(v, f.connect(v))
	refs := []attributes.Ref{v.Attributes.Ref}
	places, err := s.look(ctx, refs, s.remote.Look)
	if err != nil {
		return sight{}, err
	}
	at := places[v.Attributes.Ref.String()]
	if at.err != nil {
		return sight{}, at.err
	}
	wanted := map[string]string{at.name: store.RemoteRef(at.name)}
	f.tell(r, func(ctx context.Context) error {
		_, err := s.atOnce(ctx, wanted)
		return err
	})
	err = s.complete(ctx, places, s.held(s.atOnce))
	f.tell(r, nil)
	if err != nil {
		return sight{}, err
	}
	got := places[v.Attributes.Ref.String()]
	return sight{commit: got.tip, at: got.at}, got.err
}

// tell has those who wait for the arrival know how far its fetch is.
func (f *Followers) tell(r *arrival, progress func(ctx context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.progress = progress
}

func (f *Followers) sourceOf(v Volume, r Remote) source {
	return source{followers: f, repository: f.settings.Store.Repository(v.Attributes.URL, v.Attributes.Depth), remote: r}
}

func (f *Followers) connect(v Volume) Remote {
	return f.settings.Connect(Asked{
		Repository: f.settings.Store.Repository(v.Attributes.URL, v.Attributes.Depth),
		Credential: v.Credential, Permit: v.Permit, Limits: v.Limits,
	})
}
