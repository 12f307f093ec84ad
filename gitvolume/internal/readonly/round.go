package readonly

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"liken.sh/gitvolume/internal/history"
	"liken.sh/gitvolume/internal/remote"
	"liken.sh/gitvolume/internal/report"
	"liken.sh/gitvolume/internal/store"
)

// answer is what became of asking as a scope: where the refs are, by how they are written.
type answer struct {
	source source
	places map[string]place
	err    error
}

// round asks for what is planned, and brings trees to what was answered.
func (w *follower) round(ctx context.Context, p plan) {
	for _, c := range p.unfinished {
		if err := w.followers.complete(ctx, c); err != nil && ctx.Err() == nil {
			for _, a := range w.users(c) {
				a.volume.Report.Raise(report.FetchFailed, err.Error())
			}
		}
	}
	if p.demanded && w.followers.settings.Demanded != nil {
		w.followers.settings.Demanded()
	}
	answers := map[scope]answer{}
	for _, s := range slices.Sorted(maps.Keys(p.asked)) {
		one := w.ask(ctx, p, s)
		if ctx.Err() != nil {
			return
		}
		answers[s] = one
		w.note(s, one.err)
	}
	moves := map[*checkout]error{}
	for _, asked := range p.asked {
		for _, a := range asked {
			if _, done := moves[a.checkout]; !done {
				moves[a.checkout] = w.bring(ctx, a.checkout, answers)
			}
		}
	}
	if ctx.Err() != nil {
		return
	}
	for s, asked := range p.asked {
		for _, a := range asked {
			w.conclude(a, s, answers[s], moves[a.checkout])
		}
	}
}

// ask looks where the refs are, and fetches what the store has not got.
func (w *follower) ask(ctx context.Context, p plan, s scope) answer {
	source := source{followers: w.followers, repository: w.repository, remote: p.remotes[s]}
	look, by := source.remote.Look, source.inTurn
	if p.demanded {
		look, by = source.remote.LookAnew, source.anewInTurn
	}
	places, err := source.lookInTurn(ctx, refs(p.asked[s]), look)
	if err == nil {
		err = source.complete(ctx, places, by)
	}
	if history.IsBroken(err) {
		err = setAside(ctx, w.repository, err)
	}
	return answer{source: source, places: places, err: err}
}

// complete has the places' tips be commits that the store has.
func (s source) complete(ctx context.Context, places map[string]place, by fetchBy) error {
	var there []place
	for _, p := range places {
		if p.err == nil {
			there = append(there, p)
		}
	}
	if len(there) == 0 {
		return nil
	}
	commits, err := s.known(ctx, there)
	if err != nil {
		return err
	}
	there = slices.DeleteFunc(there, func(p place) bool {
		_, isKnown := commits[p.name]
		return isKnown
	})
	brought, err := s.bring(ctx, there, by)
	if err != nil {
		return err
	}
	maps.Copy(commits, brought)
	for ref, p := range places {
		if p.err == nil {
			places[ref] = commits[p.name]
		}
	}
	return nil
}

// note notes when the scope was asked, and how that ended.
func (w *follower) note(s scope, err error) {
	w.followers.mu.Lock()
	defer w.followers.mu.Unlock()
	v := w.views[s]
	if v == nil {
		return // Nobody has that credential any more.
	}
	urgent := v.urgent
	w.asked(s, err != nil)
	v.urgent = urgent // Said meanwhile.
	var failure *remote.Failure
	if errors.As(err, &failure) {
		v.leave = failure.After
	}
}

// conclude notes and reports what the answer, and the move that followed, mean for a volume.
func (w *follower) conclude(a *Attachment, s scope, one answer, moved error) {
	p := one.places[a.attributes.Ref.String()]
	err := cmp.Or(one.err, p.err, moved)
	isMissing := one.err == nil && errors.Is(p.err, remote.ErrNoRef)
	if isMissing {
		err = nil
	}
	f := w.followers
	f.mu.Lock()
	if a.scope != s {
		f.mu.Unlock()
		return // It has another credential by now.
	}
	isNews := one.err == nil && a.proven != s
	if a.failing, a.refused = err != nil, one.err != nil && !isAway(one.err); one.err == nil {
		a.proven = s
	}
	a.stale = a.stale && (err != nil || isMissing)
	if v := w.views[s]; v != nil && moved != nil {
		v.failures = max(v.failures, 1)
	}
	f.mu.Unlock()
	if isNews {
		w.keepScope(a, s)
	}
	r := a.volume.Report
	switch {
	case err != nil:
		r.Raise(report.FetchFailed, err.Error())
	case isMissing:
		r.Clear(report.FetchFailed, report.CredentialMissing)
		r.Raise(report.RefDeleted, fmt.Sprintf("the remote has no %q any more: the last tree stays until there is one again", a.attributes.Ref))
	default:
		r.Clear(report.FetchFailed, report.CredentialMissing, report.RefDeleted, report.Stale)
	}
}

// keepScope notes as whom the volume was let in.
func (w *follower) keepScope(a *Attachment, s scope) {
	err := a.Save(func(r *store.Record) { r.Reading = r.Reading.In(string(s)) })
	if err != nil && !errors.Is(err, store.ErrNoRecord) {
		w.followers.settings.Log.Warn("a volume's record is as it was", "volume", a.volume.handle(), "error", err)
	}
}

// agreed is what all volumes that show the checkout are to see; none, if one of them does
// not see it.
func (w *follower) agreed(c *checkout, answers map[scope]answer) (seen sight, as source, agreed bool) {
	w.followers.mu.Lock()
	defer w.followers.mu.Unlock()
	for a := range c.users {
		if a.attributes.Pull.IsNever() {
			return sight{}, source{}, false
		}
		one, asked := answers[a.scope]
		p, found := one.places[a.attributes.Ref.String()]
		if !asked || !found || one.err != nil || p.err != nil || agreed && p.tip != seen.commit {
			return sight{}, source{}, false
		}
		if !agreed || p.at.Before(seen.at) {
			seen = sight{commit: p.tip, at: p.at}
		}
		as, agreed = one.source, true
	}
	return seen, as, agreed
}

// bring brings the checkout to what was answered, if its volumes agree.
func (w *follower) bring(ctx context.Context, c *checkout, answers map[scope]answer) error {
	seen, as, agreed := w.agreed(c, answers)
	if !agreed {
		return nil
	}
	skipped, err := w.followers.move(ctx, c, seen)
	if history.IsBroken(err) {
		if err = as.repair(ctx, c, err); err == nil {
			skipped, err = w.followers.move(ctx, c, seen)
		}
	}
	if err != nil {
		return fmt.Errorf("write what was fetched: %w", err)
	}
	for _, a := range w.users(c) {
		a.volume.Report.Skipped(skipped)
	}
	return nil
}

func (w *follower) users(c *checkout) []*Attachment {
	w.followers.mu.Lock()
	defer w.followers.mu.Unlock()
	return slices.Collect(maps.Keys(c.users))
}
