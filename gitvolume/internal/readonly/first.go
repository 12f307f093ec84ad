package readonly

import (
	"context"
	"errors"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
	"liken.sh/gitvolume/internal/worktree"
)

// first is what a volume shows when it is attached.
type first struct {
	sight
	// stale is why nothing was fetched; nil: it was.
	stale error
}

// first fetches what the volume is to show, or finds what it showed.
func (f *Followers) first(ctx context.Context, r *arrival, before store.Record) (first, error) {
	seen, err := f.ask(ctx, r)
	if err == nil {
		return first{sight: f.started(ctx, r, before, seen)}, nil
	}
	if r.volume.Attributes.Offline != attributes.OfflineAllowStale || !isAway(err) {
		return first{}, err
	}
	commit, found := f.last(ctx, r, before)
	if !found {
		return first{}, err
	}
	return first{sight: sight{commit: commit}, stale: err}, nil
}

// started is the commit that a volume which never pulls started with, if it started before.
func (f *Followers) started(ctx context.Context, r *arrival, before store.Record, seen sight) sight {
	if !r.volume.Attributes.Pull.IsNever() || before.Reading == nil || scope(before.Reading.Scope) != r.scope {
		return seen
	}
	kept, err := f.kept(ctx, f.repositoryOf(r.volume), before.Reading.Checkout, store.AnchorTip)
	if err != nil || kept != before.Reading.Commit {
		return seen
	}
	return sight{commit: kept, at: seen.at}
}

func (f *Followers) repositoryOf(v Volume) store.Repository {
	return f.settings.Store.Repository(v.Attributes.URL, v.Attributes.Depth)
}

// isAway tells of the errors that say nothing about what the credential may see. In any
// other, as one of git that has no kind, may be that it is not let in.
func isAway(err error) bool {
	var missing *remote.MissingRef
	if errors.As(err, &missing) {
		return !missing.Empty // It was let in, and the ref is gone.
	}
	return remote.IsSilence(err)
}

// last is the last tree that the node has of the volume's ref and that was brought as who
// the volume is: the volume's own, or another's.
func (f *Followers) last(ctx context.Context, r *arrival, own store.Record) (object.ID, bool) {
	records, _, err := f.settings.Store.All()
	if err != nil {
		f.settings.Log.Warn("what the node has of a ref cannot be looked for", "error", err)
	}
	for _, record := range append([]store.Record{own}, records...) {
		if record.Reading == nil || !r.volume.isOf(record) || scope(record.Reading.Scope) != r.scope {
			continue
		}
		commit, err := f.kept(ctx, f.repositoryOf(r.volume), record.Reading.Checkout, store.AnchorTip)
		if err == nil {
			return commit, true
		}
		if !errors.Is(err, history.ErrNoRef) {
			f.settings.Log.Warn("what the node has of a ref cannot be used", "volume", record.Handle, "error", err)
		}
	}
	return object.ID{}, false
}

// settle brings the volume's tree to what it shows first, and has it followed.
func (f *Followers) settle(ctx context.Context, r *arrival, before store.Record, start first) (*Attachment, error) {
	a := f.place(r, before, start)
	err := a.Save(func(*store.Record) {})
	if err == nil {
		err = f.show(ctx, a, start)
	}
	if err != nil {
		f.mu.Lock()
		f.release(a.checkout, a)
		f.mu.Unlock()
		return nil, errors.Join(err, f.unplace(context.WithoutCancel(ctx), a, before))
	}
	f.enter(a, r)
	if old := before.Reading; old != nil && old.Checkout != a.checkout.key {
		if err := f.drop(ctx, old.Checkout); err != nil {
			f.settings.Log.Warn("a checkout stays that nobody needs", "checkout", old.Checkout, "error", err)
		}
	}
	f.say(a, start.stale)
	return a, nil
}

// place gives the volume a tree: that of those who see the same, if all of them still are
// who they were.
func (f *Followers) place(r *arrival, record store.Record, start first) *Attachment {
	v := r.volume
	a := &Attachment{
		followers: f, volume: v, attributes: v.Attributes, scope: r.scope, proven: r.scope,
		stale: start.stale != nil, failing: start.stale != nil, credential: v.Credential, record: record,
	}
	var only object.ID
	if v.Attributes.Pull.IsNever() {
		only = start.commit
	}
	key := checkoutKey(v.Attributes, r.scope, only)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.checkouts[key]; c != nil {
		for user := range c.users {
			if user.scope != r.scope || user.proven != r.scope {
				key = ownKey(key, v.handle())
				break
			}
		}
	}
	a.checkout = f.share(key, f.repositoryOf(v), a)
	a.record.Reading = &store.Reading{
		Pull: v.Attributes.Pull.String(), Offline: string(v.Attributes.Offline),
		Checkout: key, Scope: string(r.scope), Commit: start.commit,
	}
	return a
}

// show writes the tree. What others see, or a volume sees that is resumed later, is at
// least as new as a commit that was not fetched just now.
func (f *Followers) show(ctx context.Context, a *Attachment, start first) error {
	f.mu.Lock()
	shared := len(a.checkout.users) > 1
	f.mu.Unlock()
	if shared && start.stale != nil {
		// That one of them is still writing it must not be told as the end of that.
		unlock, err := f.trees.Lock(ctx, a.checkout.key)
		if err != nil {
			return err
		}
		unlock()
		if commit, err := f.tree(a.checkout.key, nil).Commit(); err == nil && !commit.IsZero() {
			return nil
		}
	}
	skipped, err := f.move(ctx, a.checkout, start.sight)
	if !shared && (history.IsBroken(err) || errors.Is(err, worktree.ErrChanged)) {
		// Nobody has what was there before: it is of no use, or was lost with its repository.
		if err = f.renew(ctx, a.checkout); err == nil {
			skipped, err = f.move(ctx, a.checkout, start.sight)
		}
	}
	if history.IsBroken(err) {
		return setAside(ctx, a.checkout.repository, err) // The next call finds a new one.
	}
	if err == nil {
		a.volume.Report.Skipped(skipped)
	}
	return err
}

// renew throws away what a tree held that nobody shows yet.
func (f *Followers) renew(ctx context.Context, c *checkout) error {
	unlock, err := f.trees.Lock(ctx, c.key)
	if err != nil {
		return err
	}
	defer unlock()
	c.commit = object.ID{}
	return f.settings.Store.RemoveCheckout(c.key)
}

// unplace takes back what place began, after an error.
func (f *Followers) unplace(ctx context.Context, a *Attachment, before store.Record) error {
	a.end()
	if before.Reading != nil {
		return f.settings.Store.Save(before)
	}
	if err := f.settings.Store.Remove(before.Handle); err != nil {
		return err
	}
	return f.drop(ctx, a.checkout.key)
}

// enter has the volume followed.
func (f *Followers) enter(a *Attachment, r *arrival) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attached[a.volume.handle()] = a
	a.follower = f.follower(a.checkout.repository)
	a.follower.join(a)
	a.follower.view(a.scope, f.connect, r.volume)
	a.follower.asked(a.scope, a.stale)
	a.follower.poke()
}

// say reports how the volume starts.
func (f *Followers) say(a *Attachment, stale error) {
	if stale == nil {
		a.volume.Report.Clear(report.FetchFailed, report.Stale, report.RefDeleted, report.CredentialMissing)
		return
	}
	a.volume.Report.Raise(report.Stale, "the volume was started with what this node had of it: "+stale.Error())
}
