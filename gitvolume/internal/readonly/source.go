package readonly

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"liken.sh/gitvolume/internal/attributes"
	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/object"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/store"
)

// ErrNoCommit says that a ref names something else than a commit, such as a tag of a file.
var ErrNoCommit = errors.New("the ref is not of a commit")

// source is a repository of the store and what it is filled from.
type source struct {
	followers  *Followers
	repository store.Repository
	remote     Remote
}

// place is where a ref of a volume is upstream.
type place struct {
	name string    // The ref's full name, or the commit's id.
	tip  object.ID // What it names.
	at   time.Time // Not before this.
	err  error     // It is nowhere: a *remote.MissingRef, or no commit.
}

// look tells where the refs are, by how they are written. A commit is asked for by nobody.
func (s source) look(ctx context.Context, refs []attributes.Ref, by lookBy) (map[string]place, error) {
	places := map[string]place{}
	var names []string
	now := time.Now()
	for _, ref := range refs {
		if id, isCommit := ref.Commit(); isCommit {
			places[ref.String()] = place{name: id.String(), tip: id, at: now}
		} else {
			names = append(names, ref.String())
		}
	}
	if len(names) == 0 {
		return places, nil
	}
	within, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	looked, err := by(within, names)
	if err != nil {
		if within.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", remote.ErrTimeout, err)
		}
		return nil, err
	}
	for _, name := range names {
		l := looked[name]
		places[name] = place{name: l.Ref.Name, tip: l.Ref.Tip, at: now, err: l.Err}
	}
	return places, nil
}

// lookInTurn is look as background work.
func (s source) lookInTurn(ctx context.Context, refs []attributes.Ref, by lookBy) (places map[string]place, err error) {
	within, release, err := s.followers.settings.Slots.Take(ctx, s.repository.URL, remote.Asking)
	if err != nil {
		return nil, fmt.Errorf("wait for a slot to look in: %w", err)
	}
	defer func() { release(err) }()
	return s.look(within, refs, by)
}

// lookBy is one of the Remote's ways to look.
type lookBy func(ctx context.Context, names []string) (map[string]Looked, error)

// lookTimeout bounds a look, which holds a slot, with the one that it may have to wait for.
const lookTimeout = 2 * remote.LookTimeout

// fetchBy is one of the Remote's ways to fetch.
type fetchBy func(ctx context.Context, refs map[string]string) (map[string]remote.Fetched, error)

func (s source) atOnce(ctx context.Context, refs map[string]string) (map[string]remote.Fetched, error) {
	return s.remote.Fetch(ctx, refs, remote.Foreground)
}

func (s source) inTurn(ctx context.Context, refs map[string]string) (map[string]remote.Fetched, error) {
	return s.remote.Fetch(ctx, refs, remote.Background)
}

func (s source) anewInTurn(ctx context.Context, refs map[string]string) (map[string]remote.Fetched, error) {
	return s.remote.FetchAnew(ctx, refs, remote.Background)
}

// hold keeps a repository in its place while something is fetched.
func hold(ctx context.Context, r store.Repository) (release func(), err error) {
	unguard, err := r.Use(ctx)
	if err != nil {
		return nil, err
	}
	return func() {
		r.Written()
		unguard()
	}, nil
}

// held is fetchBy of a repository that is kept in its place meanwhile, as those in turn keep
// it once they have their turn: nobody is to wait for it who waits for other remotes.
func (s source) held(by fetchBy) fetchBy {
	return func(ctx context.Context, refs map[string]string) (map[string]remote.Fetched, error) {
		release, err := hold(ctx, s.repository)
		if err != nil {
			return nil, err
		}
		defer release()
		return by(ctx, refs)
	}
}

// fetch fetches what the names are of. A fetch goes on when who waits for it leaves.
func (s source) fetch(ctx context.Context, refs map[string]string, by fetchBy) (map[string]remote.Fetched, error) {
	type outcome struct {
		fetched map[string]remote.Fetched
		err     error
	}
	done := make(chan outcome, 1)
	f := s.followers
	f.mu.Lock()
	f.work(func() {
		fetched, err := by(f.ctx, refs)
		done <- outcome{fetched, err}
	})
	f.mu.Unlock()
	select {
	case o := <-done:
		return o.fetched, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the fetch: %w", context.Cause(ctx))
	}
}

// bring fetches the places by their names and gives their commits. A place that is nowhere
// by now, or no commit, has that as its error.
func (s source) bring(ctx context.Context, places []place, by fetchBy) (map[string]place, error) {
	refs := map[string]string{}
	for _, p := range places {
		refs[p.name] = store.RemoteRef(p.name)
	}
	if len(refs) == 0 {
		return nil, nil
	}
	fetched, err := s.fetch(ctx, refs, by)
	if err != nil {
		return nil, err
	}
	brought := map[string]place{}
	for _, p := range places {
		switch one := fetched[p.name]; {
		case one.Gone:
			p.err = &remote.MissingRef{Name: p.name}
		case one.Commit.IsZero():
			p.err = fmt.Errorf("%w: %q", ErrNoCommit, p.name)
		default:
			p.tip = one.Commit
		}
		brought[p.name] = p
	}
	return brought, nil
}

// known are the places of which the store has the tip already, by their names, with their
// commits. Of a commit, who asks has to fetch it: nobody else's word counts.
func (s source) known(ctx context.Context, places []place) (map[string]place, error) {
	release, err := s.repository.Use(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	repo, err := history.Open(s.repository.Dir())
	if err != nil {
		return nil, fmt.Errorf("open the repository: %w", store.BlameForOpening(s.repository.Dir(), err))
	}
	defer repo.Close()
	known := map[string]place{}
	for _, p := range places {
		if !strings.HasPrefix(p.name, "refs/") {
			continue
		}
		if tip, err := repo.Ref(store.RemoteRef(p.name)); err != nil || tip != p.tip {
			continue
		}
		commit, err := repo.CommitOf(p.tip)
		if errors.Is(err, history.ErrNotCommit) {
			p.err = fmt.Errorf("%w: %q", ErrNoCommit, p.name)
		} else if err != nil {
			continue // A fetch brings it again.
		}
		p.tip = commit
		known[p.name] = p
	}
	return known, nil
}
